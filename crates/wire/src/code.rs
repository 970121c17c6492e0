//! MongoDB's error codes: one table of numbers and names.
//!
//! Source: MongoDB's `error_codes.yml`, without the codes that only sharded clusters, stream
//! processing or MongoDB's own tests use. The `codeName` of a code without a name is "Location"
//! followed by the number. Such codes are written as `ErrorCode(51003)` where they are raised.

use std::borrow::Cow;

/// One of MongoDB's error codes. Those with a name are constants: `ErrorCode::BadValue`.
///
/// ```
/// use windrow_wire::ErrorCode;
///
/// assert_eq!(ErrorCode::DuplicateKey.number(), 11000);
/// assert_eq!(ErrorCode(51003).name(), "Location51003");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i32);

impl ErrorCode {
    /// Returns the number of the code, which replies contain as `code`.
    pub fn number(self) -> i32 {
        self.0
    }

    /// Returns the name of the code, which replies contain as `codeName`.
    pub fn name(self) -> Cow<'static, str> {
        let index = NAMES.binary_search_by_key(&self.0, |&(number, _)| number);
        match index.ok().and_then(|index| NAMES.get(index)) {
            Some(&(_, name)) => Cow::Borrowed(name),
            None => Cow::Owned(format!("Location{}", self.0)),
        }
    }
}

impl From<i32> for ErrorCode {
    fn from(number: i32) -> ErrorCode {
        ErrorCode(number)
    }
}

macro_rules! error_codes {
    ($($number:literal $name:ident)*) => {
        #[allow(non_upper_case_globals)]
        impl ErrorCode {
            $(#[doc = concat!("MongoDB's error code ", $number, ".")]
            pub const $name: ErrorCode = ErrorCode($number);)*
        }

        /// Sorted by number.
        const NAMES: &[(i32, &str)] = &[$(($number, stringify!($name))),*];
    };
}

error_codes! {
    1 InternalError
    2 BadValue
    4 NoSuchKey
    5 GraphContainsCycle
    6 HostUnreachable
    7 HostNotFound
    8 UnknownError
    9 FailedToParse
    10 CannotMutateObject
    11 UserNotFound
    12 UnsupportedFormat
    13 Unauthorized
    14 TypeMismatch
    15 Overflow
    16 InvalidLength
    17 ProtocolError
    18 AuthenticationFailed
    19 CannotReuseObject
    20 IllegalOperation
    21 EmptyArrayOperation
    22 InvalidBSON
    23 AlreadyInitialized
    24 LockTimeout
    26 NamespaceNotFound
    27 IndexNotFound
    28 PathNotViable
    29 NonExistentPath
    30 InvalidPath
    31 RoleNotFound
    32 RolesNotRelated
    33 PrivilegeNotFound
    34 CannotBackfillArray
    35 UserModificationFailed
    37 FileRenameFailed
    38 FileNotOpen
    39 FileStreamFailed
    40 ConflictingUpdateOperators
    41 FileAlreadyOpen
    42 LogWriteFailed
    43 CursorNotFound
    45 UserDataInconsistent
    46 LockBusy
    47 NoMatchingDocument
    48 NamespaceExists
    49 InvalidRoleModification
    50 MaxTimeMSExpired
    51 ManualInterventionRequired
    52 DollarPrefixedFieldName
    53 InvalidIdField
    54 NotSingleValueField
    55 InvalidDBRef
    56 EmptyFieldName
    57 DottedFieldName
    58 RoleModificationFailed
    59 CommandNotFound
    62 OplogOperationUnsupported
    64 WriteConcernTimeout
    65 MultipleErrorsOccurred
    66 ImmutableField
    67 CannotCreateIndex
    68 IndexAlreadyExists
    69 AuthSchemaIncompatible
    71 ReplicaSetNotFound
    72 InvalidOptions
    73 InvalidNamespace
    74 NodeNotFound
    75 WriteConcernLegacyOK
    76 NoReplicationEnabled
    77 OperationIncomplete
    78 CommandResultSchemaViolation
    79 UnknownReplWriteConcern
    80 RoleDataInconsistent
    81 NoMatchParseContext
    82 NoProgressMade
    85 IndexOptionsConflict
    86 IndexKeySpecsConflict
    89 NetworkTimeout
    90 CallbackCanceled
    91 ShutdownInProgress
    93 InvalidReplicaSetConfig
    94 NotYetInitialized
    96 OperationFailed
    97 NoProjectionFound
    98 DBPathInUse
    100 UnsatisfiableWriteConcern
    101 OutdatedClient
    107 LockFailed
    109 ConfigurationInProgress
    111 NotExactValueField
    112 WriteConflict
    115 CommandNotSupported
    116 DocTooLargeForCapped
    117 ConflictingOperationInProgress
    121 DocumentValidationFailure
    123 NotAReplicaSet
    125 CommandFailed
    126 RPCProtocolNegotiationFailed
    128 LockNotFound
    129 LockStateChangeFailed
    130 SymbolNotFound
    133 FailedToSatisfyReadPreference
    134 ReadConcernMajorityNotAvailableYet
    136 CappedPositionLost
    139 JSInterpreterFailure
    140 InvalidSSLConfiguration
    141 SSLHandshakeFailed
    142 JSUncatchableError
    143 CursorInUse
    146 ExceededMemoryLimit
    147 ZLibError
    148 ReadConcernMajorityNotEnabled
    151 OperationCannotBeBatched
    157 CanRepairToDowngrade
    158 MustUpgrade
    159 DurationOverflow
    160 MaxStalenessOutOfRange
    161 IncompatibleCollationVersion
    162 CollectionIsEmpty
    165 ViewDepthLimitExceeded
    166 CommandNotSupportedOnView
    167 OptionNotSupportedOnView
    168 InvalidPipelineOperator
    170 TooManyMatchingDocuments
    171 CannotIndexParallelArrays
    172 TransportSessionClosed
    175 QueryPlanKilled
    176 FileOpenFailed
    178 RangeOverlapConflict
    181 AmbiguousIndexKeyPattern
    182 InvalidViewDefinition
    183 ClientMetadataMissingField
    184 ClientMetadataAppNameTooLarge
    185 ClientMetadataDocumentTooLarge
    186 ClientMetadataCannotBeMutated
    187 LinearizableReadConcernError
    188 IncompatibleServerVersion
    189 PrimarySteppedDown
    192 FailPointEnabled
    193 NoShardingEnabled
    195 ViewPipelineMaxSizeExceeded
    197 InvalidIndexSpecificationOption
    201 CannotBuildIndexKeys
    205 ClusterTimeFailsRateLimiter
    206 NoSuchSession
    207 InvalidUUID
    208 TooManyLocks
    211 KeyNotFound
    213 DuplicateSession
    214 AuthenticationRestrictionUnmet
    215 DatabaseDropPending
    217 IncompleteTransactionHistory
    218 UpdateOperationFailed
    221 IndexModified
    222 CloseChangeStream
    223 IllegalOpMsgFlag
    224 QueryFeatureNotAllowed
    225 TransactionTooOld
    226 AtomicityFailure
    229 MustDowngrade
    232 MaxSubPipelineDepthExceeded
    233 TooManyDocumentSequences
    234 RetryChangeStream
    235 InternalErrorNotSupported
    237 CursorKilled
    238 NotImplemented
    239 SnapshotTooOld
    241 ConversionFailure
    242 CannotCreateCollection
    246 SnapshotUnavailable
    251 NoSuchTransaction
    252 ReentrancyNotAllowed
    256 TransactionCommitted
    257 TransactionTooLarge
    258 UnknownFeatureCompatibilityVersion
    260 InvalidResumeToken
    261 TooManyLogicalSessions
    262 ExceededTimeLimit
    263 OperationNotSupportedInTransaction
    264 TooManyFilesOpen
    266 FailPointSetFailed
    267 PreparedTransactionInProgress
    268 CannotBackup
    269 DataModifiedByRepair
    271 JSInterpreterFailureWithStack
    276 IndexBuildAborted
    278 UnsatisfiableCommitQuorum
    279 ClientDisconnect
    280 ChangeStreamFatalError
    285 IndexBuildAlreadyInProgress
    286 ChangeStreamHistoryLost
    288 ChecksumMismatch
    290 TransactionExceededLifetimeLimitSeconds
    291 NoQueryExecutionPlans
    292 QueryExceededMemoryLimitNoDiskUseAllowed
    301 DataCorruptionDetected
    314 ObjectIsBusy
    322 APIVersionError
    323 APIStrictError
    324 APIDeprecationError
    332 CannotDowngrade
    334 MechanismUnavailable
    346 ChangeStreamInvalidated
    347 APIMismatchError
    349 KeyPatternShorterThanBound
    351 ChangeStreamStartAfterInvalidate
    352 UnsupportedOpQueryCommand
    355 InterruptedDueToStorageChange
    356 TxnRetryCounterTooOld
    357 InvalidBSONType
    359 CannotConvertIndexToUnique
    361 CollectionUUIDMismatch
    365 TemporarilyUnavailable
    371 UserWritesBlocked
    376 ChangeStreamNotEnabled
    378 NonConformantBSON
    388 TransactionTooLargeForCache
    391 ReauthenticationRequired
    395 TruncatedSerialization
    400 CannotUpgrade
    402 ResourceExhausted
    411 QueryRejectedBySettings
    426 IndexIsEmpty
    430 IndexKeyOrderViolation
    9001 SocketException
    10003 CannotGrowDocumentInCappedNamespace
    10058 LegacyNotPrimary
    10107 NotWritablePrimary
    10334 BSONObjectTooLarge
    11000 DuplicateKey
    11600 InterruptedAtShutdown
    11601 Interrupted
    11602 InterruptedDueToReplStateChange
    12586 BackgroundOperationInProgressForDatabase
    12587 BackgroundOperationInProgressForNamespace
    13113 MergeStageNoMatchingDocument
    13297 DatabaseDifferCase
    13435 NotPrimaryNoSecondaryOk
    13436 NotPrimaryOrSecondary
    14031 OutOfDiskSpace
    17280 KeyTooLong
    31082 SearchNotEnabled
    40413 IDLDuplicateField
    40414 IDLFailedToParse
    40415 IDLUnknownField
    46841 ClientMarkedKilled
    50768 NotARetryableWriteCommand
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(NAMES.is_sorted_by(|(code, _), (next, _)| code < next));
    }

    #[test]
    fn codes_have_the_names_of_mongodb() {
        let check = |code: ErrorCode, number: i32, name: &str| {
            assert_eq!((code.number(), code.name().as_ref()), (number, name));
        };
        check(ErrorCode::InternalError, 1, "InternalError");
        check(ErrorCode::NamespaceNotFound, 26, "NamespaceNotFound");
        check(ErrorCode::CommandNotFound, 59, "CommandNotFound");
        check(ErrorCode::DuplicateKey, 11000, "DuplicateKey");
        check(ErrorCode::IDLUnknownField, 40415, "IDLUnknownField");
        check(ErrorCode(16406), 16406, "Location16406");
    }
}
