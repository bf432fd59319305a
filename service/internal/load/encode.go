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
	out, err := createRows(path)
	if err != nil {
		return 0, err
	}
	defer out.abandon()
	for _, input := range inputs {
		count, err := decodeFile(input, out.write)
		if err != nil {
			return 0, err
		}
		rows += count
	}
	return rows, out.finish()
}

// rowsFile is a gzipped CSV file that appears under its name when it is finished.
type rowsFile struct {
	path       string
	file       *os.File
	compressed *gzip.Writer
	out        *bufio.Writer
	line       []byte
}

func createRows(path string) (*rowsFile, error) {
	file, err := os.Create(path + ".part")
	if err != nil {
		return nil, fmt.Errorf("rows: %w", err)
	}
	compressed := gzip.NewWriter(file)
	out := bufio.NewWriterSize(compressed, bufferBytes)
	out.WriteString(rowsHeader)
	return &rowsFile{path: path, file: file, compressed: compressed, out: out}, nil
}

func (f *rowsFile) write(result *vegeta.Result) error {
	f.line = appendRow(f.line[:0], result)
	if _, err := f.out.Write(f.line); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	return nil
}

func (f *rowsFile) finish() error {
	for _, finish := range []func() error{f.out.Flush, f.compressed.Close, f.file.Close} {
		if err := finish(); err != nil {
			return fmt.Errorf("rows: %w", err)
		}
	}
	return os.Rename(f.path+".part", f.path)
}

// abandon removes what finish has not renamed.
func (f *rowsFile) abandon() {
	f.file.Close()
	os.Remove(f.path + ".part")
}

// decodeFile shows the records of one gob file to visit, one after the other.
func decodeFile(path string, visit func(*vegeta.Result) error) (records uint64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("records: %w", err)
	}
	defer file.Close()
	in := &countingReader{buffered: bufio.NewReaderSize(file, bufferBytes)}
	decode := vegeta.NewDecoder(in)
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
				path, records+1, whole, in.read, err)
		}
		if err := visit(&result); err != nil {
			return 0, err
		}
		records++
	}
	if records == 0 {
		return 0, program.BadDocumentf("%s: broken or cut off: no record in %d bytes", path, in.read)
	}
	return records, nil
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
