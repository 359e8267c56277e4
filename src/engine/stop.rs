//! A request to stop an update at the next batch boundary.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::error::{Error, Result};

/// Shared by whoever may ask for the stop and whoever obeys it. Once requested, it stays so.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    is_requested: AtomicBool,
    notify: Notify,
}

impl Stop {
    /// Not requested yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks everything that shares this to stop.
    pub fn request(&self) {
        self.inner.is_requested.store(true, Ordering::Release);
        self.inner.notify.notify_waiters();
    }

    /// True once a stop was asked for.
    pub fn is_requested(&self) -> bool {
        self.inner.is_requested.load(Ordering::Acquire)
    }

    /// Err([`Error::Canceled`]) once a stop was asked for.
    pub fn check(&self) -> Result<()> {
        match self.is_requested() {
            true => Err(Error::Canceled),
            false => Ok(()),
        }
    }

    /// Sleeps, or returns early when a stop is asked for.
    pub async fn sleep(&self, duration: std::time::Duration) {
        let notified = self.inner.notify.notified();
        if self.is_requested() {
            return;
        }
        tokio::select! {
            () = notified => {}
            () = tokio::time::sleep(duration) => {}
        }
    }
}
