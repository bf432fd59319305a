package load

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"ztbench/service/internal/program"
)

const rowsHeader = "seq,timestampNs,latencyNs,code,error\n"

// Encode turns vegeta's gob files, one after the other, into gzipped CSV rows (RFC 4180 quoting,
// lines end in LF). It holds one record at a time. A file that breaks off inside a record, or holds
// none, is an error with its position, and then path is left as it was.
func Encode(inputs []string, path string) (rows uint64, err error) {
	part := path + ".part"
	file, err := os.Create(part)
	if err != nil {
		return 0, fmt.Errorf("rows: %w", err)
	}
	defer os.Remove(part)
	defer file.Close()
	compressed := gzip.NewWriter(file)
	out := bufio.NewWriterSize(compressed, bufferBytes)
	out.WriteString(rowsHeader)
	for _, input := range inputs {
		count, err := encodeFile(input, out)
		if err != nil {
			return 0, err
		}
		rows += count
	}
	for _, finish := range []func() error{out.Flush, compressed.Close, file.Close} {
		if err := finish(); err != nil {
			return 0, fmt.Errorf("rows: %w", err)
		}
	}
	return rows, os.Rename(part, path)
}

func encodeFile(path string, out *bufio.Writer) (rows uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("records: %w", err)
	}
	defer file.Close()
	in := &countingReader{buffered: bufio.NewReaderSize(file, bufferBytes)}
	decode := vegeta.NewDecoder(in)
	var line []byte
	for {
		// A fresh result each time: gob leaves fields alone that were zero when encoded.
		var result vegeta.Result
		whole := in.read
		err := decode(&result)
		if errors.Is(err, io.EOF) && in.read == whole {
			break
		}
		if err != nil {
			return 0, program.BadDocumentf(
				"%s: broken or cut off: record %d, which begins at byte %d, ends at byte %d: %w",
				path, rows+1, whole, in.read, err)
		}
		line = appendRow(line[:0], &result)
		if _, err := out.Write(line); err != nil {
			return 0, fmt.Errorf("rows: %w", err)
		}
		rows++
	}
	if rows == 0 {
		return 0, program.BadDocumentf("%s: broken or cut off: no record in %d bytes", path, in.read)
	}
	return rows, nil
}

func appendRow(line []byte, result *vegeta.Result) []byte {
	line = strconv.AppendUint(line, result.Seq, 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, result.Timestamp.UnixNano(), 10)
	line = append(line, ',')
	line = strconv.AppendInt(line, int64(result.Latency), 10)
	line = append(line, ',')
	line = strconv.AppendUint(line, uint64(result.Code), 10)
	line = append(line, ',')
	return append(appendField(line, result.Error), '\n')
}

func appendField(line []byte, text string) []byte {
	if !strings.ContainsAny(text, ",\"\r\n") {
		return append(line, text...)
	}
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(text, `"`, `""`)...)
	return append(line, '"')
}

// countingReader counts what the gob decoder took. It offers ReadByte, since without that the
// decoder would read ahead and the count would say nothing about records.
type countingReader struct {
	buffered *bufio.Reader
	read     int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.buffered.Read(p)
	r.read += int64(n)
	return n, err
}

func (r *countingReader) ReadByte() (byte, error) {
	b, err := r.buffered.ReadByte()
	if err == nil {
		r.read++
	}
	return b, err
}
