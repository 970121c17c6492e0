//! `invalidateUserCache`: has no effect, because each request compares the users in memory with the
//! stored ones.

use windrow_access::Action;

use crate::access::Needs;
use crate::command::{Command, Routing};

pub const INVALIDATE_USER_CACHE: Command = Command {
    name: "invalidateUserCache",
    help: "has no effect: changes of users are known at once",
    routing: Routing::Users,
    needs: Needs::OnServer(&[Action::invalidateUserCache]),
    admin_only: true,
    ..Command::EMPTY
};
