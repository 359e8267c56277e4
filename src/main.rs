fn main() {
    let args: Vec<String> = std::env::args().collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = engine::Engine::open(std::path::Path::new(&args[1]), &[]).unwrap();
        let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
        let request = match args.get(2) { Some(t) => pipeline::command::UpdateRequest { full_refresh: vec![t.clone()], with_downstream: true, ..Default::default() }, None => Default::default() };
        let outcome = engine.run(request, tx, engine::Stop::new()).await;
        while let Ok(event) = rx.try_recv() { println!("{} {:?} {:?}", event.level.word(), event.flow, event.message); }
        match outcome { Ok(report) => println!("{report:#?}"), Err(engine::error::Error::Invalid{diagnostics}) => for d in diagnostics { println!("{} {}: {} {:?} {:?}", d.severity.word(), d.code, d.message, d.span.map(|s| pipeline::diagnostic::place(&engine.workspace().files, s)), d.help) }, Err(e) => println!("ERR {e} {:?}", e.help()) }
    });
}
