//! Finding the columns of a source from a sample of its files, and widening them when later files bring more.
//!
//! The sample is the first files by path, read whole, so that the result depends on the files and not on the order in
//! which they were found. Within the sample the widest type wins; later the known types stay as they are
//! (architecture: "a stored schema is fixed, and what doesn't fit is rescued").

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pipeline::data_type::{DataType, Field};
use pipeline::read_files::{FileFormat, ReadFiles, SchemaEvolutionMode};

use super::json::{Inference, InferenceConfig};
use super::list::FileEntry;
use super::read::{Lines, read_whole};
use super::scan::{can_cut, may_skip};
use super::schema::{Role, SourceSchema};
use super::split::{Part, cut};
use super::{avro, csv, parquet, partition, text};
use crate::data_type::{can_widen, merge_types, position, schema_from_arrow, schema_to_arrow, widest_fields};
use crate::error::{Error, Result};

/// As Databricks: the first 1000 files or 50 GB.
const SAMPLE_FILES: usize = 1000;
const SAMPLE_BYTES: u64 = 50 << 30;

/// Returns the columns of the source: those declared or found in `files`, those of the paths, the rescued column.
///
/// Without any file these are the hinted and the rescued ones; callers that need more say so to the user. Blocks
/// while it reads, on as many threads as there are cores.
pub fn infer(spec: &ReadFiles, files: &[FileEntry]) -> Result<SourceSchema> {
    let sample = sample(files);
    let partition = partition::infer(spec, &sample);
    if let Some(declared) = &spec.schema {
        let is_declared = |field: &&Field| position(declared, &field.name).is_some();
        return Ok(SourceSchema {
            partition: partition.iter().filter(is_declared).map(|field| field.name.clone()).collect(),
            ..finish(spec, declared.clone(), false)
        });
    }
    let mut columns = contents(spec, &sample)?;
    if let Some(rescued) = &spec.rescued_data_column
        && columns.iter().any(|column| column.name.eq_ignore_ascii_case(rescued))
    {
        return Err(Error::user(
            "rescued-column-conflict",
            format!("the files have a column `{rescued}` of their own"),
            "choose another name with `rescuedDataColumn`",
        ));
    }
    // The path's value wins over a column of the file.
    columns.retain(|column| position(&partition, &column.name).is_none());
    let names = partition.iter().map(|field| field.name.clone()).collect();
    columns.extend(partition);
    for hint in &spec.schema_hints {
        apply_hint(&mut columns, &hint.name, hint);
    }
    Ok(SourceSchema { partition: names, ..finish(spec, columns, true) })
}

fn sample(files: &[FileEntry]) -> Vec<FileEntry> {
    let mut sample = files.to_vec();
    sample.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut bytes = 0;
    let is_in = |file: &&FileEntry| {
        let fits = bytes < SAMPLE_BYTES;
        bytes += file.size;
        fits
    };
    let count = sample.iter().take(SAMPLE_FILES).take_while(is_in).count();
    sample.truncate(count);
    sample
}

/// Adds the columns that are ours: where rescued and corrupt records go.
fn finish(spec: &ReadFiles, mut columns: Vec<Field>, is_inferred: bool) -> SourceSchema {
    let string =
        |name: &str| Field { name: name.into(), data_type: DataType::String, is_nullable: true, comment: None };
    // As in Spark, a declared schema says itself whether it wants corrupt records.
    let corrupt = spec.corrupt_record_column.clone().filter(|name| is_inferred || position(&columns, name).is_some());
    // A line of text is never misread.
    let rescued = spec.rescued_data_column.clone().filter(|_| spec.format != FileFormat::Text);
    for name in [&corrupt, &rescued].into_iter().flatten() {
        if position(&columns, name).is_none() {
            columns.push(string(name));
        }
    }
    SourceSchema { schema: schema_to_arrow(&columns), partition: Vec::new(), rescued, corrupt }
}

/// Returns the schema that a checkpoint reads the source with as the definition has it now: an edited `schema => "…"`
/// holds for the files to come. What was found since stays where new columns are added.
pub fn as_declared(spec: &ReadFiles, stored: SourceSchema) -> Result<SourceSchema> {
    use SchemaEvolutionMode::{AddNewColumns, AddNewColumnsWithTypeWidening};
    let Some(declared) = &spec.schema else { return Ok(stored) };
    let mut columns = declared.clone();
    if matches!(spec.schema_evolution_mode, AddNewColumns | AddNewColumnsWithTypeWidening) {
        let known = schema_from_arrow(&stored.schema).map_err(Error::Internal)?;
        columns.extend(known.into_iter().filter(|field| position(declared, &field.name).is_none()));
    }
    let partition = stored.partition.into_iter().filter(|name| position(&columns, name).is_some()).collect();
    Ok(SourceSchema { partition, ..finish(spec, columns, false) })
}

/// Returns the schema widened by what `files` have and it lacks: new columns at the end, new members at the end of
/// their structs, new `key=value` folders. Types stay, unless the mode is `addNewColumnsWithTypeWidening`.
///
/// In that mode call it before each batch, since misfits don't end a scan. A result that equals `schema` after
/// [`Error::UnknownFields`] means that the files changed meanwhile.
pub fn evolve(spec: &ReadFiles, schema: &SourceSchema, files: &[FileEntry]) -> Result<SourceSchema> {
    let widens = spec.schema_evolution_mode == SchemaEvolutionMode::AddNewColumnsWithTypeWidening;
    let mut sorted = files.to_vec();
    sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut columns = schema_from_arrow(&schema.schema).map_err(Error::Internal)?;
    let mut evolved = schema.clone();
    for field in partition::infer(spec, &sorted) {
        if position(&columns, &field.name).is_none() {
            evolved.partition.push(field.name.clone());
            columns.push(field);
        }
    }
    let found = contents(spec, &sorted)?;
    let is_data = |field: &Field| evolved.role(&field.name) == Role::Data;
    let mut found: Vec<Field> = found.into_iter().filter(is_data).collect();
    for hint in &spec.schema_hints {
        // A hint only speaks about what is there now; what it would add was added at first.
        if position(&found, hint.name.split('.').next().unwrap_or_default()).is_some() {
            apply_hint(&mut found, &hint.name, hint);
        }
    }
    grow_fields(&mut columns, &found, widens);
    evolved.schema = schema_to_arrow(&columns);
    Ok(evolved)
}

fn grow_fields(known: &mut Vec<Field>, found: &[Field], widens: bool) {
    for field in found {
        match position(known, &field.name) {
            Some(index) => grow(&mut known[index].data_type, &field.data_type, widens),
            None => known.push(Field { is_nullable: true, ..field.clone() }),
        }
    }
}

fn grow(known: &mut DataType, found: &DataType, widens: bool) {
    match (known, found) {
        (DataType::Struct(known), DataType::Struct(found)) => grow_fields(known, found, widens),
        (DataType::Array(known), DataType::Array(found)) => grow(known, found, widens),
        (DataType::Map(_, known), DataType::Map(_, found)) => grow(known, found, widens),
        (known, found) if widens => {
            if let Some(wider) = merge_types(known, found).filter(|wider| can_widen(known, wider)) {
                *known = wider;
            }
        }
        _ => {}
    }
}

/// Gives the column at `path` (dotted, `element`, `key` and `value` inside arrays and maps) the hinted type.
fn apply_hint(columns: &mut Vec<Field>, path: &str, hint: &Field) {
    if let Some(index) = position(columns, path) {
        columns[index].data_type = hint.data_type.clone();
        columns[index].comment = hint.comment.clone();
        return;
    }
    let Some((name, rest)) = path.split_once('.') else {
        columns.push(Field { name: path.into(), ..hint.clone() });
        return;
    };
    match position(columns, name) {
        Some(index) => hint_inside(&mut columns[index].data_type, rest, hint),
        None => {
            let mut members = Vec::new();
            apply_hint(&mut members, rest, hint);
            let data_type = DataType::Struct(members);
            columns.push(Field { name: name.into(), data_type, is_nullable: true, comment: None });
        }
    }
}

fn hint_inside(data_type: &mut DataType, path: &str, hint: &Field) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let part = match data_type {
        DataType::Array(element) if first == "element" => element,
        DataType::Map(key, _) if first == "key" => key,
        DataType::Map(_, value) if first == "value" => value,
        DataType::Struct(members) => return apply_hint(members, path, hint),
        // The sample had no struct here (all NULL, say); the hint knows better.
        other => {
            let mut members = Vec::new();
            apply_hint(&mut members, path, hint);
            *other = DataType::Struct(members);
            return;
        }
    };
    match rest {
        Some(rest) => hint_inside(part, rest, hint),
        None => **part = hint.data_type.clone(),
    }
}

/// How much of a file one thread looks at.
const PART_BYTES: u64 = 16 << 20;

/// Returns the columns that the contents of the files have, by all of their records.
fn contents(spec: &ReadFiles, files: &[FileEntry]) -> Result<Vec<Field>> {
    let part_of = |part: &Part| (&files[part.file], Part { file: 0, ..*part });
    match spec.format {
        FileFormat::Text => Ok(text::columns()),
        FileFormat::Json => {
            let parts = cut(files, PART_BYTES, |file| can_cut(spec, file));
            let config = json_inference(spec);
            let look = |part: &Part| {
                let (file, part) = part_of(part);
                let mut inference = Inference::new(config.clone())?;
                observe_json(spec, file, part, &mut inference)?;
                Ok(inference)
            };
            let seen = each(spec, &parts, look)?.into_iter().reduce(Inference::merge);
            let schema = seen.map_or_else(|| Inference::new(config.clone()), Ok)?.finish();
            schema_from_arrow(&schema).map_err(Error::Internal)
        }
        FileFormat::Csv => {
            let parts = cut(files, PART_BYTES, |file| can_cut(spec, file));
            let look = |part: &Part| {
                let (file, part) = part_of(part);
                csv::infer(spec, file, part)
            };
            Ok(csv::columns(each(spec, &parts, look)?))
        }
        FileFormat::Parquet => Ok(widest(each(spec, files, parquet::columns)?)),
        FileFormat::Avro => Ok(widest(each(spec, files, avro::columns)?)),
    }
}

fn widest(schemas: Vec<Vec<Field>>) -> Vec<Field> {
    schemas.into_iter().reduce(|a, b| widest_fields(&a, &b)).unwrap_or_default()
}

fn json_inference(spec: &ReadFiles) -> InferenceConfig {
    InferenceConfig {
        infer_column_types: spec.infer_column_types,
        reader_case_sensitive: spec.reader_case_sensitive,
        multi_line: spec.multi_line,
        time_zone: spec.time_zone.clone(),
        timestamp_format: spec.timestamp_format.clone(),
        options: spec.json.clone(),
    }
}

fn observe_json(spec: &ReadFiles, file: &FileEntry, part: Part, inference: &mut Inference) -> Result<()> {
    if spec.multi_line {
        inference.observe(&read_whole(file)?);
        return Ok(());
    }
    let mut lines = Lines::open(file, part)?;
    while let Some(chunk) = lines.next_chunk()? {
        inference.observe(chunk);
    }
    Ok(())
}

/// Does `look` for each item, on all cores; the results in the order of the items, without those of skipped files.
fn each<Item: Sync, Seen: Send>(
    spec: &ReadFiles,
    items: &[Item],
    look: impl Fn(&Item) -> Result<Seen> + Sync,
) -> Result<Vec<Seen>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut seen = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(index) else { return Ok(seen) };
            match look(item) {
                Ok(one) => seen.push((index, one)),
                Err(error) if may_skip(spec, &error) => {}
                Err(error) => {
                    // The other threads need not go on.
                    next.store(items.len(), Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(items.len()).max(1);
    let seen = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all: Vec<Result<Vec<(usize, Seen)>>> = vec![work()];
        all.extend(
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        );
        all
    });
    let mut seen: Vec<(usize, Seen)> = seen.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    seen.sort_by_key(|(index, _)| *index);
    Ok(seen.into_iter().map(|(_, seen)| seen).collect())
}
