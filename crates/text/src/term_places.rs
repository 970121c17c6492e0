//! The places of terms in a list of the terms of a document.

/// Finds the place that a numbered term has in the list of one document's terms.
///
/// ```
/// use windrow_text::TermPlaces;
///
/// let mut places = TermPlaces::default();
/// assert_eq!([7, 3, 7].map(|term| places.place(term, 0)), [0, 0, 0]);
/// places.begin_document();
/// assert_eq!(places.place(3, 0), 0);
/// assert_eq!(places.place(7, 1), 1);
/// assert_eq!(places.place(3, 2), 0);
/// ```
#[derive(Default)]
pub struct TermPlaces {
    document: u32,
    /// By the number of the term.
    places: Vec<Place>,
}

/// The place of a term in the last document with it.
#[derive(Clone, Copy)]
struct Place {
    document: u32,
    place: u32,
}

/// The number of a document that does not exist.
const NO_DOCUMENT: u32 = u32::MAX;

impl Place {
    /// The place of a term that has not occurred.
    const NONE: Place = Place {
        document: NO_DOCUMENT,
        place: 0,
    };
}

impl TermPlaces {
    /// Begins another document. No term has a place in it.
    pub fn begin_document(&mut self) {
        self.document += 1;
        if self.document == NO_DOCUMENT {
            self.places.fill(Place::NONE);
            self.document = 0;
        }
    }

    /// Returns the place of a term in the list. A term without a place gets `next`, the length of
    /// the list.
    #[inline]
    pub fn place(&mut self, term: u32, next: usize) -> u32 {
        if term as usize >= self.places.len() {
            self.places.resize(term as usize + 1, Place::NONE);
        }
        let Some(known) = self.places.get_mut(term as usize) else {
            unreachable!("the table of places was extended to {term}");
        };
        if known.document != self.document {
            *known = Place {
                document: self.document,
                place: next as u32,
            };
        }
        known.place
    }

    /// Forgets all terms, whose numbers are to stand for other ones.
    pub fn forget(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_earlier_documents_do_not_count() {
        let mut places = TermPlaces {
            document: NO_DOCUMENT - 3,
            places: Vec::new(),
        };
        // The numbers of documents begin again.
        for _ in 0..6 {
            assert_eq!(places.place(2, 0), 0);
            assert_eq!(places.place(0, 1), 1);
            assert_eq!(places.place(2, 2), 0);
            places.begin_document();
        }
        places.place(5, 9);
        places.forget();
        assert_eq!(places.place(5, 0), 0);
    }
}
