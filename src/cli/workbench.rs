//! `flowbench [WORKSPACE]` in a terminal: the engine on threads of its own, the screen on this one; between them
//! commands and answers, plain data.

use std::thread::JoinHandle;
use std::time::Duration;

use engine::clock::now_us;
use tokio::sync::mpsc::unbounded_channel;
use tui::app::Options;
use tui::terminal::Wiring;
use tui::theme::Theme;

use super::exit::{Exit, Trouble};
use super::run::{Signals, abort};
use super::{Context, log, print, workspace};

/// Usually the engine has ended before a sentence about it could be read.
const PAUSE: Duration = Duration::from_millis(100);

/// Opens the workbench; returns when it is quit.
pub fn run(context: &Context) -> Result<Exit, Trouble> {
    let root = workspace::folder(context.folder.as_deref(), context.global.workspace.as_deref())?;
    // A folder without a workspace has nothing to show; the answer says how to make one.
    if !root.join(engine::open::SETTINGS_FILE).is_file() {
        workspace::open(context)?;
    }
    let _log = log::start(&engine::open::storage_folder(&root, &context.global.overrides));
    let (ask, commands) = unbounded_channel();
    let (tell, answers) = unbounded_channel();
    let (served, overrides) = (root.clone(), context.global.overrides.clone());
    let engine = std::thread::Builder::new()
        .name("engine".to_string())
        .stack_size(engine::serve::STACK_BYTES)
        .spawn(move || engine::serve::serve(served, overrides, commands, tell))?;
    let options = Options {
        theme: Theme { has_colours: context.terminal.has_colours(), is_ascii: context.terminal.is_ascii() },
        utc_offset_s: chrono::Local::now().offset().local_minus_utc(),
    };
    let wiring = Wiring {
        answers,
        // Without an engine the loop ends by itself.
        ask: move |command| drop(ask.send(command)),
        now_us,
        root,
        has_mouse: std::env::var_os("FLOWBENCH_NO_MOUSE").is_none(),
    };
    let screen = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = screen.block_on(tui::terminal::run(options, wiring));
    match screen.block_on(end(engine)) {
        Ok(served) => served?,
        Err(_) => {
            return Err(Trouble::Io {
                action: "go on".to_string(),
                source: std::io::Error::other("the engine's thread panicked"),
            });
        }
    }
    shown.map_err(|source| Trouble::Io { action: "use the terminal".to_string(), source })?;
    Ok(Exit::Ok)
}

/// Waits for the engine, which brings the batches that run to their end; says so if that takes a moment. A Ctrl-C
/// meanwhile ends the process, which is safe at any moment.
async fn end(engine: JoinHandle<std::io::Result<()>>) -> std::thread::Result<std::io::Result<()>> {
    let interrupted = Signals::new();
    let mut ended = tokio::task::spawn_blocking(move || engine.join());
    if let Ok(ended) = tokio::time::timeout(PAUSE, &mut ended).await {
        return ended.unwrap_or_else(|panic| Err(Box::new(panic)));
    }
    print::say_line(format_args!("stopping the update at its batch boundary… press Ctrl-C to abort"));
    let interrupted = async {
        match interrupted {
            Ok(mut signals) => signals.next().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = ended => ended.unwrap_or_else(|panic| Err(Box::new(panic))),
        () = interrupted => abort(),
    }
}
