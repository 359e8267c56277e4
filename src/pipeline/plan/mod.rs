//! A request and what happened before → what an update will do. Pure: the engine gathers the facts and
//! carries the plan out, `explain` prints it, tests compare it.
//!
//! - `request.rs`: what is asked for; `history.rs`: the facts, as read from state.db
//! - `update.rs`: which flows run, which tables are built anew
//! - `again.rs`: what would be read or appended a second time
//! - `order.rs`: flows that would be waited for and are not selected
//! - `explain.rs`: the plan in words

pub mod again;
pub mod explain;
pub mod history;
mod order;
mod request;
pub mod update;

pub use history::{FlowHistory, History};
pub use request::{Cause, UpdateRequest};
pub use update::{FlowAction, Notice, Refusal, UpdatePlan, plan_update};
