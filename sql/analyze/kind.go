package analyze

// Kind is the kind of a statement. KindOf finds it before the statement is analyzed.
type Kind uint8

// The kinds of statements.
const (
	OtherKind  Kind = iota // DDL, or no statement at all
	QueryKind              // SELECT, WITH, FROM, GRAPH, TABLE, or any of these in parentheses
	InsertKind             // INSERT
	UpdateKind             // UPDATE
	DeleteKind             // DELETE
	CallKind               // CALL
)

// DML reports whether statements of the kind change tables.
func (k Kind) DML() bool { return k == InsertKind || k == UpdateKind || k == DeleteKind }

var kinds = map[string]Kind{
	"SELECT": QueryKind, "WITH": QueryKind, "FROM": QueryKind, "GRAPH": QueryKind, "TABLE": QueryKind,
	"INSERT": InsertKind, "UPDATE": UpdateKind, "DELETE": DeleteKind, "CALL": CallKind,
}

// KindOf finds the kind of a statement by its first word after comments, hints and parentheses. It does not check the
// text after that word. If Statement accepts the text, the tree that it returns is of this kind.
func KindOf(sql string) Kind {
	s := scanner{sql: sql}
	parenthesized := false
	for s.next() {
		switch s.token {
		case "(":
			parenthesized = true
			continue
		case "@":
			s.skipHint()
			continue
		}
		kind := kinds[s.word()]
		if parenthesized && kind != QueryKind {
			return OtherKind
		}
		return kind
	}
	return OtherKind
}

// skipHint skips what follows the @ of a hint: a number, or {k=v, ...}. A hint with both, @n @{...}, takes two calls.
func (s *scanner) skipHint() {
	if !s.next() || s.token != "{" {
		return
	}
	for depth := 1; depth > 0 && s.next(); {
		switch s.token {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
}
