package analyze

import "github.com/goccy/go-googlesql"

// statementKinds are the statements that ExecuteSql takes. DDL arrives in UpdateDatabaseDdl and does not pass the analyzer.
var statementKinds = []googlesql.ResolvedNodeKind{
	googlesql.ResolvedNodeKindResolvedQueryStmt,
	googlesql.ResolvedNodeKindResolvedInsertStmt,
	googlesql.ResolvedNodeKindResolvedUpdateStmt,
	googlesql.ResolvedNodeKindResolvedDeleteStmt,
	googlesql.ResolvedNodeKindResolvedCallStmt,
}

// definitionKinds are the statements whose texts are definitions in DDL. In these, names of columns are qualified, so that a new column of a table
// does not change what they mean.
var definitionKinds = []googlesql.ResolvedNodeKind{
	googlesql.ResolvedNodeKindResolvedCreateViewStmt,
	googlesql.ResolvedNodeKindResolvedCreateFunctionStmt,
}

// features are the parts of GoogleSQL that Cloud Spanner has beyond its core, by its reference manual. Not among them: window
// functions, ROLLUP and grouping sets, PIVOT, QUALIFY, recursive WITH, DATETIME and TIME, BIGNUMERIC, GEOGRAPHY, NULLS FIRST.
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

// rewritesOff are rewrites of the library that are turned off, since the tree can hold the statement without them. The library would write
// some functions out as subqueries, ARRAY_FILTER among them.
var rewritesOff = []googlesql.ResolvedASTRewrite{
	googlesql.ResolvedASTRewriteRewriteBuiltinFunctionInliner,
	googlesql.ResolvedASTRewriteRewriteWithExpr,
	googlesql.ResolvedASTRewriteRewriteArrayFilterTransform,
	googlesql.ResolvedASTRewriteRewriteArrayIncludes,
	googlesql.ResolvedASTRewriteRewriteMultiwayUnnest,
	googlesql.ResolvedASTRewriteRewriteOrderByAndLimitInAggregate,
}
