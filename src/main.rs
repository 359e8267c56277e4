//! Reads the arguments, starts the front end, sets the exit code.

mod cli;

fn main() -> std::process::ExitCode {
    // Only shapes the message of a panic, which is a bug of ours; without it the message is plainer.
    let _ = color_eyre::config::HookBuilder::default()
        .theme(color_eyre::config::Theme::new())
        .display_env_section(false)
        .panic_section("this is a bug in flowbench; what was committed is safe, the next run goes on from there")
        .install();
    std::process::ExitCode::from(cli::main(std::env::args_os()).code())
}
