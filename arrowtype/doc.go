// Package arrowtype maps the types and values of Cloud Spanner to those of Apache Arrow and back. The server's Flight
// SQL (value/columnar), clients and files all use this package, so that a column is the same everywhere.
//
//	Spanner       Arrow                          remarks
//	BOOL          bool
//	INT64         int64
//	FLOAT32       float32                        NaN and infinities are kept
//	FLOAT64       float64
//	NUMERIC       decimal128(38, 9)
//	STRING        utf8
//	BYTES         binary
//	DATE          date32
//	TIMESTAMP     timestamp[ns, UTC]             from 1677-09-21T00:12:43.145224192Z
//	                                             to 2262-04-11T23:47:16.854775807Z; another value is an error
//	              timestamp[us, UTC]             with Microseconds: every value, rounded to microseconds towards the past
//	              utf8                           with Text: every value unchanged, in RFC 3339
//	JSON          arrow.json, stored as utf8     Arrow's canonical extension type
//	UUID          arrow.uuid, 16 bytes           Arrow's canonical extension type
//	INTERVAL      interval[month_day_nano]       an interval whose time part is beyond 292 years is an error
//	              utf8                           with Text: ISO 8601
//	PROTO         binary                         the bytes of the message
//	ENUM          int64                          its number
//	ARRAY<T>      list<item: T>                  elements are nullable
//	STRUCT<...>   struct<...>                    fields are nullable
//
// If table columns can have the type, the column also has metadata under TypeKey: the type in DDL, such as STRING(25).
// SpannerType reads this metadata. If it is missing, SpannerType infers a type.
//
// Values also have a text form, that of Spanner's API: INT64 as digits, TIMESTAMP as RFC 3339 in UTC, BYTES as base64.
// Appender makes columns from texts, and Formatter makes texts from columns. The functions Parse... also accept some
// other forms.
//
// Imports of this module: nothing.
package arrowtype
