//! Values by language.

use crate::language::Language;

/// A value for each language, created when it is first needed. Few languages are in use at a time.
pub(crate) struct ByLanguage<T> {
    values: Vec<(usize, T)>,
}

impl<T> Default for ByLanguage<T> {
    fn default() -> ByLanguage<T> {
        ByLanguage { values: Vec::new() }
    }
}

impl<T> ByLanguage<T> {
    /// Returns the value of a language.
    pub(crate) fn get(&mut self, language: Language, create: impl FnOnce() -> T) -> &mut T {
        let number = language.number();
        let known = self.values.iter().position(|(known, _)| *known == number);
        let index = known.unwrap_or_else(|| {
            self.values.push((number, create()));
            self.values.len() - 1
        });
        #[allow(
            clippy::indexing_slicing,
            reason = "the value was found or created above"
        )]
        &mut self.values[index].1
    }

    /// Returns the values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.values.iter().map(|(_, value)| value)
    }

    /// Returns the values for changes.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut().map(|(_, value)| value)
    }
}
