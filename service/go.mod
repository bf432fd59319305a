module ztbench/service

go 1.26.0

require (
	github.com/golang-jwt/jwt/v5 v5.3.1
	github.com/tsenart/vegeta/v12 v12.11.0
	golang.org/x/sys v0.30.0
)

require (
	github.com/influxdata/tdigest v0.0.1 // indirect
	github.com/josharian/intern v1.0.0 // indirect
	github.com/mailru/easyjson v0.7.7 // indirect
	github.com/rs/dnscache v0.0.0-20211102005908-e0241e321417 // indirect
	golang.org/x/net v0.12.0 // indirect
	golang.org/x/sync v0.3.0 // indirect
	golang.org/x/text v0.11.0 // indirect
)
