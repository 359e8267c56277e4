//! A workspace of any size: layers of tables over a few JSON sources, as people write them. No two queries are alike.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Sources that the bronze tables read.
const SOURCES: usize = 5;

/// Flows of one file: four bronze, three silver, three gold.
pub const FLOWS_A_FILE: usize = 10;

/// Writes a workspace of `files` files into an empty folder; returns its lines.
pub fn write(root: &Path, files: usize) -> std::io::Result<usize> {
    fs::create_dir_all(root.join("transformations"))?;
    fs::write(
        root.join("flowbench.toml"),
        "[pipeline]\nname = \"large\"\n\n[configuration]\ndata = \"data\"\nfirst_day = \"2024-01-01\"\n",
    )?;
    for source in 0..SOURCES {
        let folder = root.join(format!("data/source_{source}"));
        fs::create_dir_all(&folder)?;
        let mut rows = String::new();
        for row in 0..100 {
            let _ = writeln!(
                rows,
                "{{\"id\":{row},\"customer_id\":{},\"status\":\"s{}\",\"amount\":{}.5,\"created_at\":\"2024-05-01T10:00:00\",\
                 \"address\":{{\"city\":\"c{row}\",\"zip\":\"{row}\"}},\"tags\":[\"a\",\"b\"],\"source_{source}\":true}}",
                row % 10,
                row % 3,
                row * 7
            );
        }
        fs::write(folder.join("part-0.json"), rows)?;
    }
    let mut lines = 0;
    for file in 0..files {
        let text = definitions(file);
        lines += text.lines().count();
        fs::write(root.join(format!("transformations/area_{file:03}.sql")), text)?;
    }
    Ok(lines)
}

/// The text of one file.
pub fn definitions(file: usize) -> String {
    let mut text = format!("-- Area {file}: orders and what is made of them.\n");
    for table in 0..4 {
        let source = (file + table) % SOURCES;
        let _ = write!(
            text,
            "
CREATE OR REFRESH STREAMING TABLE bronze.orders_{file}_{table}
COMMENT 'As delivered'
AS SELECT *, _metadata.file_name AS source_file, {file} AS area
FROM STREAM read_files('${{data}}/source_{source}', format => 'json', maxFilesPerTrigger => 10);
"
        );
    }
    for table in 0..3 {
        let _ = write!(
            text,
            "
CREATE TEMPORARY VIEW paid_{file}_{table}
AS SELECT * EXCEPT (tags) FROM STREAM(bronze.orders_{file}_{table}) WHERE status <> 'TEST_{file}_{table}';

CREATE OR REFRESH STREAMING TABLE silver.orders_{file}_{table}
COMMENT 'Cleaned'
AS SELECT
  o.id AS order_id,
  o.customer_id,
  upper(trim(o.status)) AS status,
  {file} * 10 + {table} AS made_by,
  CAST(o.amount AS DECIMAL(18, 2)) AS amount,
  to_timestamp(o.created_at) AS created_at,
  o.address.city AS city,
  coalesce(o.address.zip, 'unknown') AS zip
FROM STREAM paid_{file}_{table} AS o
WHERE o.created_at >= '${{first_day}}' AND o.amount > 0;
"
        );
        let _ = write!(
            text,
            "
CREATE OR REFRESH MATERIALIZED VIEW gold.revenue_{file}_{table}
COMMENT 'By day and city'
AS SELECT
  date(a.created_at) AS day,
  a.city,
  count(*) AS orders,
  sum(a.amount) AS revenue,
  max(b.amount) AS largest_{file}_{table}
FROM silver.orders_{file}_{table} AS a
LEFT JOIN silver.orders_{file}_{other} AS b ON a.order_id = b.order_id
WHERE a.status IN ('S0', 'S1')
GROUP BY date(a.created_at), a.city
ORDER BY day;
",
            other = (table + 1) % 3
        );
    }
    text
}
