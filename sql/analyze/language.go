package analyze

import "github.com/goccy/go-googlesql"

// statementKinds are the kinds of statements that ExecuteSql accepts. DDL is not among them, because clients send DDL
// to UpdateDatabaseDdl.
var statementKinds = []googlesql.ResolvedNodeKind{
	googlesql.ResolvedNodeKindResolvedQueryStmt,
	googlesql.ResolvedNodeKindResolvedInsertStmt,
	googlesql.ResolvedNodeKindResolvedUpdateStmt,
	googlesql.ResolvedNodeKindResolvedDeleteStmt,
	googlesql.ResolvedNodeKindResolvedCallStmt,
}

// definitionKinds are the kinds of DDL statements that GoogleSQL's library analyzes. In such a statement, each column
// name must be qualified by its table. Otherwise a column that is added to another table later could change the meaning
// of the name.
var definitionKinds = []googlesql.ResolvedNodeKind{
	googlesql.ResolvedNodeKindResolvedCreateViewStmt,
	googlesql.ResolvedNodeKindResolvedCreateFunctionStmt,
}

// features are the parts of GoogleSQL beyond its core that Cloud Spanner's reference manual lists. Cloud Spanner does
// not have window functions, ROLLUP and grouping sets, PIVOT, QUALIFY, recursive WITH, DATETIME and TIME, BIGNUMERIC,
// GEOGRAPHY and NULLS FIRST.
var features = []googlesql.LanguageFeature{
	// Types.
	googlesql.LanguageFeatureFeatureTimestampNanos,
	googlesql.LanguageFeatureFeatureNumericType,
	googlesql.LanguageFeatureFeatureJsonType,
	googlesql.LanguageFeatureFeatureIntervalType,
	googlesql.LanguageFeatureFeatureUuidType,
	googlesql.LanguageFeatureFeatureProtoBase,
	googlesql.LanguageFeatureFeatureV13BracedProtoConstructors,
	googlesql.LanguageFeatureFeatureReplaceFields,
	googlesql.LanguageFeatureFeatureProtoExtensionsWithNew,
	googlesql.LanguageFeatureFeatureProtoExtensionsWithSet,

	// Queries.
	googlesql.LanguageFeatureFeaturePipes,
	googlesql.LanguageFeatureFeatureTablesample,
	googlesql.LanguageFeatureFeatureForUpdate,
	googlesql.LanguageFeatureFeatureWithOnSubquery,
	googlesql.LanguageFeatureFeatureSelectStarExceptReplace,
	googlesql.LanguageFeatureFeatureOrderByCollate,
	googlesql.LanguageFeatureFeatureMultiwayUnnest,
	googlesql.LanguageFeatureFeatureLimitOffsetExpressions,
	googlesql.LanguageFeatureFeatureArrayEquality,
	googlesql.LanguageFeatureFeatureEnforceConditionalEvaluation,
	googlesql.LanguageFeatureFeatureTableValuedFunctions,

	// DML.
	googlesql.LanguageFeatureFeatureDmlReturning,
	googlesql.LanguageFeatureFeatureDmlUpdateWithJoin,
	googlesql.LanguageFeatureFeatureColumnDefaultValue,
	googlesql.LanguageFeatureFeatureInsertOnConflictClause,
	googlesql.LanguageFeatureFeatureDisallowPrimaryKeyUpdates,

	// Calls.
	googlesql.LanguageFeatureFeatureNamedArguments,
	googlesql.LanguageFeatureFeatureFunctionArgumentsWithDefaults,
	googlesql.LanguageFeatureFeatureInlineLambdaArgument,
	googlesql.LanguageFeatureFeatureSequenceArg,
	googlesql.LanguageFeatureFeatureSafeFunctionCall,
	googlesql.LanguageFeatureFeatureSafeFunctionCallWithLambdaArgs,
	googlesql.LanguageFeatureFeatureWithExpression,
	googlesql.LanguageFeatureFeatureIsDistinct,
	googlesql.LanguageFeatureFeatureFormatInCast,
	googlesql.LanguageFeatureFeatureBareArrayAccess,
	googlesql.LanguageFeatureFeatureLikeAnySomeAll,

	// Aggregates.
	googlesql.LanguageFeatureFeatureHavingInAggregate,
	googlesql.LanguageFeatureFeatureNullHandlingModifierInAggregate,
	googlesql.LanguageFeatureFeatureOrderByInAggregate,
	googlesql.LanguageFeatureFeatureLimitInAggregate,

	// Functions.
	googlesql.LanguageFeatureFeatureDateTimeConstructors,
	googlesql.LanguageFeatureFeatureDateArithmetics,
	googlesql.LanguageFeatureFeatureExtendedDateTimeSignatures,
	googlesql.LanguageFeatureFeatureWeekWithWeekday,
	googlesql.LanguageFeatureFeatureAdditionalStringFunctions,
	googlesql.LanguageFeatureFeatureAliasesForStringAndDateFunctions,
	googlesql.LanguageFeatureFeatureAllowRegexpExtractOptionals,
	googlesql.LanguageFeatureFeatureRoundWithRoundingMode,
	googlesql.LanguageFeatureFeatureArrayAggregationFunctions,
	googlesql.LanguageFeatureFeatureEnableFloatDistanceFunctions,
	googlesql.LanguageFeatureFeatureDotProduct,
	googlesql.LanguageFeatureFeatureJsonArrayFunctions,
	googlesql.LanguageFeatureFeatureJsonValueExtractionFunctions,
	googlesql.LanguageFeatureFeatureJsonMoreValueExtractionFunctions,
	googlesql.LanguageFeatureFeatureJsonArrayValueExtractionFunctions,
	googlesql.LanguageFeatureFeatureJsonLaxValueExtractionFunctions,
	googlesql.LanguageFeatureFeatureJsonConstructorFunctions,
	googlesql.LanguageFeatureFeatureJsonMutatorFunctions,
	googlesql.LanguageFeatureFeatureJsonContainsFunction,
	googlesql.LanguageFeatureFeatureJsonKeysFunction,
}

// rewritesOff are the rewrites that GoogleSQL's library must not make. They would replace functions and clauses that
// package sql/tree can express: ARRAY_FILTER, for example, would become a subquery.
var rewritesOff = []googlesql.ResolvedASTRewrite{
	googlesql.ResolvedASTRewriteRewriteBuiltinFunctionInliner,
	googlesql.ResolvedASTRewriteRewriteWithExpr,
	googlesql.ResolvedASTRewriteRewriteArrayFilterTransform,
	googlesql.ResolvedASTRewriteRewriteArrayIncludes,
	googlesql.ResolvedASTRewriteRewriteMultiwayUnnest,
	googlesql.ResolvedASTRewriteRewriteOrderByAndLimitInAggregate,
}
