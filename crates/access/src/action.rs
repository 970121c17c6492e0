//! The actions that privileges allow.

use std::fmt;

use windrow_document::{Array, ArrayBuf, Value, ValueRef};

use crate::error::Error;

macro_rules! actions {
    ($($name:ident)*) => {
        /// An action, named as in MongoDB. The names are those of documents, so they do not follow
        /// the rules of Rust.
        #[expect(non_camel_case_types, reason = "documents have these names")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Action {
            $(#[doc = concat!("`", stringify!($name), "`")] $name,)*
        }

        impl Action {
            /// All actions, sorted by name.
            pub const ALL: &[Action] = &[$(Action::$name),*];

            /// Returns the name in documents.
            pub fn name(self) -> &'static str {
                match self { $(Action::$name => stringify!($name),)* }
            }

            /// Returns the action with this name; `None` if there is none.
            pub fn from_name(name: &str) -> Option<Action> {
                match name { $(stringify!($name) => Some(Action::$name),)* _ => None }
            }
        }
    };
}

actions! {
    addShard analyze analyzeShardKey anyAction appendOplogNote applicationMessage applyOps
    auditConfigure authSchemaUpgrade bypassDefaultMaxTimeMS bypassDocumentValidation
    bypassWriteBlockingMode changeCustomData changeOwnCustomData changeOwnPassword changePassword
    changeStream checkMetadataConsistency cleanupOrphaned cleanupStructuredEncryptionData
    clearJumboFlag closeAllDatabases collMod collStats compact compactStructuredEncryptionData
    configureQueryAnalyzer connPoolStats connPoolSync convertToCapped cpuProfiler createCollection
    createIndex createRole createSearchIndexes createUser dbCheck dbHash dbStats dropCollection
    dropConnections dropDatabase dropIndex dropRole dropSearchIndex dropUser enableProfiler
    enableSharding find flushRouterConfig forceUUID fsync getClusterParameter getCmdLineOpts
    getDefaultRWConcern getLog getParameter getShardMap grantRole hostInfo impersonate indexStats
    inprog insert internal invalidateUserCache issueDirectShardOperations killAnyCursor
    killAnySession killCursors killop listClusterCatalog listCollections listDatabases listIndexes
    listSampledQueries listSearchIndexes listSessions listShards logRotate moveChunk moveCollection
    netstat oidReset operationMetrics planCacheIndexFilter planCacheRead planCacheWrite
    querySettings queryStatsRead queryStatsReadTransformed reIndex refineCollectionShardKey remove
    removeShard renameCollectionSameDB replSetConfigure replSetGetConfig replSetGetStatus
    replSetHeartbeat replSetResizeOplog replSetStateChange reshardCollection resync revokeRole
    rotateCertificates serverStatus setAuthenticationRestriction setClusterParameter
    setDefaultRWConcern setFeatureCompatibilityVersion setParameter setUserWriteBlockMode
    shardedDataDistribution shardingState shutdown splitChunk splitVector storageDetails top touch
    transitionFromDedicatedConfigServer transitionToDedicatedConfigServer unlock unshardCollection
    update updateSearchIndex useUUID validate viewRole viewUser
}

const WORDS: usize = 3;

/// A set of actions. A set with `anyAction` has all of them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ActionSet([u64; WORDS]);

impl ActionSet {
    /// Creates the set of these actions.
    pub fn new(actions: &[Action]) -> ActionSet {
        let mut set = ActionSet::default();
        actions.iter().for_each(|action| set.insert(*action));
        set
    }

    fn place(action: Action) -> (usize, u64) {
        let number = action as usize;
        (number / 64, 1 << (number % 64))
    }

    /// Adds an action.
    pub fn insert(&mut self, action: Action) {
        let (word, bit) = ActionSet::place(action);
        self.0
            .iter_mut()
            .skip(word)
            .take(1)
            .for_each(|it| *it |= bit);
    }

    fn has(self, action: Action) -> bool {
        let (word, bit) = ActionSet::place(action);
        self.0.get(word).is_some_and(|it| it & bit != 0)
    }

    /// Returns `true` if the set allows the action.
    pub fn allows(self, action: Action) -> bool {
        self.has(action) || self.has(Action::anyAction)
    }

    /// Returns `true` if the set allows all actions of another one.
    pub fn allows_all(self, other: ActionSet) -> bool {
        self.has(Action::anyAction) || other.minus(self).is_empty()
    }

    /// Returns `true` if there is no action in the set.
    pub fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    fn combine(self, other: ActionSet, with: impl Fn(u64, u64) -> u64) -> ActionSet {
        let mut words = self.0;
        words
            .iter_mut()
            .zip(other.0)
            .for_each(|(one, two)| *one = with(*one, two));
        ActionSet(words)
    }

    /// Returns the actions of both sets.
    pub fn union(self, other: ActionSet) -> ActionSet {
        self.combine(other, |one, two| one | two)
    }

    /// Returns the actions of this set that are not in `other`.
    pub fn minus(self, other: ActionSet) -> ActionSet {
        self.combine(other, |one, two| one & !two)
    }

    /// Returns the actions, sorted by name.
    pub fn iter(self) -> impl Iterator<Item = Action> {
        let all = Action::ALL.iter().copied();
        all.filter(move |action| self.has(*action))
    }

    /// Returns the names, sorted.
    pub fn to_array(self) -> ArrayBuf {
        self.iter()
            .map(|action| Value::from(action.name()))
            .collect()
    }

    /// Parses an array of names.
    pub fn parse(names: Array<'_>) -> Result<ActionSet, Error> {
        let mut set = ActionSet::default();
        for name in names.iter() {
            let ValueRef::String(name) = name else {
                let message = "actions must be an array of strings";
                return Err(Error::Invalid(message.to_owned()));
            };
            let action = Action::from_name(name);
            set.insert(action.ok_or_else(|| Error::UnknownAction(name.to_owned()))?);
        }
        Ok(set)
    }
}

impl fmt::Debug for ActionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_sorted_and_fit() {
        assert!(Action::ALL.is_sorted_by_key(|action| action.name()));
        assert!(Action::ALL.len() <= 64 * WORDS);
        for action in Action::ALL {
            assert_eq!(Action::from_name(action.name()), Some(*action));
            assert_eq!(
                ActionSet::new(&[*action]).iter().collect::<Vec<_>>(),
                [*action]
            );
        }
    }

    #[test]
    fn any_action_stands_for_all() {
        let any = ActionSet::new(&[Action::anyAction]);
        let find = ActionSet::new(&[Action::find]);
        assert!(any.allows(Action::shutdown) && any.allows_all(find));
        assert!(find.allows(Action::find) && !find.allows(Action::insert));
        assert!(!find.allows_all(any));
        assert!(find.minus(find).is_empty());
    }
}
