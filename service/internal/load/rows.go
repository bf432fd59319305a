package load

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// WriteRows writes the records of one of vegeta's gob files as the CSV that vegeta itself would
// write, but without bodies and headers, whose columns are empty. It holds one record at a time. A
// file that breaks off inside a record, or holds none, is an error with its position; the rows
// before it have been written then.
func WriteRows(input string, to io.Writer) error {
	out := bufio.NewWriterSize(to, bufferBytes)
	var line []byte
	_, err := decodeFile(input, func(result *vegeta.Result) error {
		line = appendVegetaRow(line[:0], result)
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("rows: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	return nil
}

func appendVegetaRow(line []byte, result *vegeta.Result) []byte {
	line = strconv.AppendInt(line, result.Timestamp.UnixNano(), 10)
	line = append(line, ',')
	line = strconv.AppendUint(line, uint64(result.Code), 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, int64(result.Latency), 10)
	line = append(line, ',')
	line = strconv.AppendUint(line, result.BytesOut, 10)
	line = append(line, ',')
	line = strconv.AppendUint(line, result.BytesIn, 10)
	line = append(line, ',')
	line = append(appendField(line, result.Error), ',', ',')
	line = append(appendField(line, result.Attack), ',')
	line = strconv.AppendUint(line, result.Seq, 10)
	line = append(line, ',')
	line = append(appendField(line, result.Method), ',')
	return append(appendField(line, result.URL), ',', '\n')
}
