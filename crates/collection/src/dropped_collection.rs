//! Releases what a dropped collection holds.

use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;

/// Releases the sections and tails of a collection that was removed from the catalog.
pub(crate) fn release_dropped(core: &Core, collection: &Collection) -> Result<(), Error> {
    collection.change_state(|state| state.dropped = true);
    let state = collection.state();
    state.indexes.iter().for_each(|it| it.index.set_dropped());
    state
        .generations()
        .for_each(|generation| generation.retire());
    let mut all = state
        .maps()
        .flat_map(|it| it.descriptors().chain(it.past_descriptors()));
    all.try_for_each(|descriptor| core.close_section(descriptor))
}
