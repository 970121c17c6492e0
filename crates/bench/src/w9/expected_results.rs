//! The expected results of the queries, derived from the generator.

use crate::corpus::users::{AGES, USERS, Users};

/// The regular expression of a query: rare enough for a small result, frequent enough for a result.
const PATTERN: &str = "zq[a-d]x";
/// 50,000 of a million.
const SKIPPED_PART: u64 = 20;

pub struct ExpectedResults {
    pub documents: u64,
    by_user: Vec<u64>,
    by_age: Vec<u64>,
    /// Documents with `x` from 0.25 to 0.75.
    pub in_the_middle: u64,
    /// Documents whose `pad` contains the pattern.
    pub matching: u64,
}

/// The parameters of a repetition of a query. They differ, so that no query runs twice.
#[derive(Clone, Copy)]
pub struct QueryParameters {
    pub user: u64,
    pub age: u64,
}

impl ExpectedResults {
    pub fn gather(corpus: &Users, documents: u64) -> Self {
        let mut expected = Self {
            documents,
            by_user: vec![0; USERS as usize],
            by_age: vec![0; AGES as usize],
            in_the_middle: 0,
            matching: 0,
        };
        let mut pad = Vec::new();
        for number in 0..documents {
            let user = corpus.user(number);
            expected.by_user[user.user as usize] += 1;
            expected.by_age[user.age as usize] += 1;
            expected.in_the_middle += u64::from((0.25..0.75).contains(&user.x));
            pad.clear();
            corpus.pad(number, &mut pad);
            expected.matching += u64::from(has_pattern(&pad));
        }
        expected
    }

    pub fn turn(&self, number: usize) -> QueryParameters {
        let number = number as u64;
        QueryParameters {
            user: 1_000 + 1_234 * number,
            age: 30 + 20 * number,
        }
    }

    /// Replaces the placeholders of a command by the parameters of a turn.
    pub fn fill(&self, command: &str, turn: QueryParameters) -> String {
        [
            ("<user>", turn.user.to_string()),
            ("<age>", turn.age.to_string()),
            ("<age+10>", (turn.age + 10).to_string()),
            ("<age+1>", (turn.age + 1).to_string()),
            ("<age+2>", (turn.age + 2).to_string()),
            ("<skip>", self.skipped().to_string()),
            ("<pattern>", PATTERN.to_owned()),
        ]
        .iter()
        .fold(command.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }

    /// The number of documents that a query skips.
    pub fn skipped(&self) -> u64 {
        self.documents / SKIPPED_PART
    }

    pub fn user_count(&self, user: u64) -> u64 {
        self.by_user[user as usize]
    }

    pub fn age_count(&self, age: u64) -> u64 {
        self.by_age[age as usize]
    }

    /// The number of documents with ages from `first` to `end` (exclusive).
    pub fn ages_count(&self, first: u64, end: u64) -> u64 {
        (first..end).map(|age| self.age_count(age)).sum()
    }

    /// The number of users with documents.
    pub fn users(&self) -> u64 {
        self.by_user.iter().filter(|count| **count > 0).count() as u64
    }
}

/// Matches [`PATTERN`] by hand, because the bench has no regular expressions.
fn has_pattern(pad: &[u8]) -> bool {
    pad.windows(4)
        .any(|four| four.starts_with(b"zq") && (b'a'..=b'd').contains(&four[2]) && four[3] == b'x')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_results_are_consistent() {
        let expected = ExpectedResults::gather(&Users { seed: 1 }, 20_000);
        assert_eq!(expected.ages_count(0, AGES), 20_000);
        assert_eq!(
            (0..USERS)
                .map(|user| expected.user_count(user))
                .sum::<u64>(),
            20_000
        );
        assert!((9_500..10_500).contains(&expected.in_the_middle));
        assert!(
            (4_850..=5_000).contains(&expected.users()),
            "{}",
            expected.users()
        );
    }

    #[test]
    fn placeholders_are_replaced() {
        let expected = ExpectedResults::gather(&Users { seed: 1 }, 100);
        let turn = QueryParameters { user: 7, age: 30 };
        let filled = expected.fill("<user> <age> <age+10> <age+1> <skip>", turn);
        assert_eq!(filled, "7 30 40 31 5");
        assert!(has_pattern(b"aazqbxa") && !has_pattern(b"zqex"));
    }
}
