package program

import "strings"

// Strings is a flag that may be given several times.
type Strings []string

func (s *Strings) String() string { return strings.Join(*s, ",") }

// Set adds one value.
func (s *Strings) Set(value string) error {
	*s = append(*s, value)
	return nil
}
