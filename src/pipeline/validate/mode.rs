//! What the pipeline's mode allows.

use crate::diagnostic::Diagnostic;
use crate::graph::Graph;
use crate::settings::{Mode, Settings};

pub(super) fn check(_graph: &Graph, settings: &Settings, diagnostics: &mut Vec<Diagnostic>) {
    if settings.mode.value == Mode::Continuous {
        diagnostics.push(
            Diagnostic::error("not-supported-yet", settings.mode.span, "continuous mode is not supported yet")
                .reason("updates are triggered: they read what is there when they start, and end")
                .help("set mode = \"triggered\" and start updates by a timer or `flowbench run`"),
        );
    }
}
