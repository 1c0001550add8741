package analyze

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// hintSet holds the hints that Spanner accepts at one kind of place in a statement, by name in upper case. Source: the
// sections "Hints" of Spanner's reference.
type hintSet map[string]hintValue

// hintValue describes the values that a hint accepts.
type hintValue struct {
	kind  value.Kind
	words []string // if not nil, a STRING must be one of these, in upper or lower case
	most  int64    // if not 0, an INT64 must be between 0 and most
	// refusal, if not nil, checks a value of the right kind further. It returns an error if the hint does not accept
	// the value, and nil if the hint accepts it.
	refusal func(*schema.Catalog, *tree.Literal) *usererror.Error
}

func word(words ...string) hintValue { return hintValue{kind: value.String, words: words} }

var (
	boolHint = hintValue{kind: value.Bool}
	nameHint = hintValue{kind: value.String}
	intHint  = hintValue{kind: value.Int64}

	joinMethod    = word("HASH_JOIN", "APPLY_JOIN", "MERGE_JOIN", "PUSH_BROADCAST_HASH_JOIN", "LOOP_JOIN")
	buildSide     = word("BUILD_LEFT", "BUILD_RIGHT")
	hashExecution = word("MULTI_PASS", "ONE_PASS")
	scanMethod    = word("AUTO", "BATCH", "ROW", "COLUMNAR", "NO_COLUMNAR")
	groupMethod   = word("HASH_GROUP", "STREAM_GROUP")
)

var statementHints = hintSet{
	"USE_ADDITIONAL_PARALLELISM":          boolHint,
	"OPTIMIZER_VERSION":                   {refusal: checkOptimizerVersion}, // no kind: INT64 and STRING are accepted
	"OPTIMIZER_STATISTICS_PACKAGE":        {kind: value.String, refusal: checkStatisticsPackage},
	"ALLOW_DISTRIBUTED_MERGE":             boolHint,
	"LOCK_SCANNED_RANGES":                 word("SHARED", "EXCLUSIVE"),
	"SCAN_METHOD":                         scanMethod,
	"EXECUTION_METHOD":                    word("DEFAULT", "BATCH", "ROW"),
	"USE_UNENFORCED_FOREIGN_KEY":          boolHint,
	"ALLOW_TIMESTAMP_PREDICATE_PUSHDOWN":  boolHint,
	"PDML_MAX_PARALLELISM":                {kind: value.Int64, most: 1000},
	"ALLOW_SEARCH_INDEXES_IN_TRANSACTION": boolHint,
	"REQUIRE_ENHANCE_QUERY":               boolHint,
	"ENHANCE_QUERY_TIMEOUT_MS":            intHint,
	"FORCE_INDEX":                         word(tree.BaseTable),
	"INDEX_STRATEGY":                      word("FORCE_INDEX_UNION"),
	"JOIN_METHOD":                         joinMethod,
	"JOIN_TYPE":                           joinMethod,
	"FORCE_JOIN_ORDER":                    boolHint,
	"HASH_JOIN_BUILD_SIDE":                buildSide,
	"HASH_JOIN_EXECUTION":                 hashExecution,
	"CONSTANT_FOLDING":                    boolHint,
	"ENABLE_ADAPTIVE_PLANS":               boolHint,
	"PARAMETER_SENSITIVE":                 word("AUTO", "ALWAYS", "NEVER"),
}

var tableHints = hintSet{
	"FORCE_INDEX":               nameHint,
	"GROUPBY_SCAN_OPTIMIZATION": boolHint,
	"INDEX_STRATEGY":            word("FORCE_INDEX_UNION"),
	"SEEKABLE_KEY_SIZE":         {kind: value.Int64, most: 16},
	"SCAN_METHOD":               scanMethod,
}

var joinHints = hintSet{
	"JOIN_METHOD":          joinMethod,
	"JOIN_TYPE":            joinMethod,
	"FORCE_JOIN_ORDER":     boolHint,
	"HASH_JOIN_BUILD_SIDE": buildSide,
	"HASH_JOIN_EXECUTION":  hashExecution,
	"BATCH_MODE":           boolHint,
	"FACTORIZED_MODE":      word("FACTORIZE_LEFT", "FACTORIZE_RIGHT", "FACTORIZE_BOTH"),
}

var (
	arrayHints    = joinHints
	subqueryHints = joinHints
	setHints      = hintSet{"JOIN_METHOD": joinMethod, "FORCE_JOIN_ORDER": boolHint}
	groupHints    = hintSet{"GROUP_METHOD": groupMethod, "GROUP_TYPE": groupMethod}
	functionHints = hintSet{"DISABLE_INLINE": boolHint}
	noHints       = hintSet{}
)

// oldHints maps old names of hints to the names that replaced them.
var oldHints = map[string]string{"JOIN_TYPE": "JOIN_METHOD", "GROUP_TYPE": "GROUP_METHOD"}

// hints checks and collects the hints at one place of a statement. It ignores hints with a prefix other than spanner,
// which are meant for other systems.
func (w *walker) hints(list []*googlesql.ResolvedOption, known hintSet) tree.Hints {
	var hints tree.Hints
	for _, h := range list {
		if q := get(h.Qualifier()); q != "" && !strings.EqualFold(q, "spanner") {
			continue
		}
		name := get(h.Name())
		upper := strings.ToUpper(name)
		takes, ok := known[upper]
		if !ok {
			refuse(usererror.HintUnknown(name))
		}
		e := w.expr(get(h.Value()))
		takes.check(w.catalog, name, e)
		if now := oldHints[upper]; now != "" {
			upper = now
		}
		if hints == nil {
			hints = tree.Hints{}
		}
		if hints[upper] != nil {
			refuse(usererror.HintRepeated(name))
		}
		hints[upper] = e
	}
	return hints
}

// check refuses a value that the hint does not accept. It accepts parameters, since their values are not known yet.
func (h hintValue) check(c *schema.Catalog, name string, e tree.Expr) {
	literal, ok := e.(*tree.Literal)
	if !ok {
		return
	}
	v := literal.Value
	good := (literal.T.Kind == h.kind || h.kind == value.Invalid) && !v.IsNull()
	if good && h.words != nil {
		good = slices.Contains(h.words, strings.ToUpper(v.AsString()))
	}
	if good && h.most > 0 {
		good = v.AsInt64() >= 0 && v.AsInt64() <= h.most
	}
	if !good {
		refuse(usererror.HintValue(name, tree.FormatLiteral(literal)))
	}
	if h.refusal == nil {
		return
	}
	if err := h.refusal(c, literal); err != nil {
		refuse(err)
	}
}

func checkOptimizerVersion(_ *schema.Catalog, l *tree.Literal) *usererror.Error {
	var text string
	switch l.T.Kind {
	case value.Int64:
		text = strconv.FormatInt(l.Value.AsInt64(), 10)
	case value.String:
		text = l.Value.AsString()
	default:
		return usererror.HintValue("OPTIMIZER_VERSION", tree.FormatLiteral(l))
	}
	if strings.EqualFold(text, "latest_version") || strings.EqualFold(text, "default_version") || schema.IsOptimizerVersion(text) {
		return nil
	}
	return usererror.OptimizerVersionUnsupported(text)
}

func checkStatisticsPackage(c *schema.Catalog, l *tree.Literal) *usererror.Error {
	if name := l.Value.AsString(); !c.HasStatisticsPackage(name) {
		return usererror.StatisticsPackageNotFound(name)
	}
	return nil
}

// checkForceIndex refuses a FORCE_INDEX of an index that the table does not have.
func checkForceIndex(scan *tree.TableScan) {
	literal, ok := scan.Hints["FORCE_INDEX"].(*tree.Literal)
	if !ok {
		return
	}
	name := literal.Value.AsString()
	if !strings.EqualFold(name, tree.BaseTable) && scan.Table.Index(name) == nil {
		refuse(usererror.HintIndexNotFound(scan.Table.FullName(), name))
	}
}
