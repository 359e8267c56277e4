//! Names without regard to case, as Spark resolves them, while the output keeps the query's spelling:
//! `SELECT ID FROM t` over a column `id` gives a column `ID`, `SELECT *` gives `id`.
//!
//! Relations (inputs, CTEs, aliases) never show in a result, so their names are folded to lower case before
//! planning. A column is only known to be spelled differently when DataFusion doesn't find it; its error says
//! where and what there is, and the name is then respelled at that place.
//!
//! Not here: fields of structs (`operators`), names of functions (DataFusion folds them).

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::common::Column;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Spanned, Statement, TableAlias, TableFactor, Value, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::Span;

/// Folds the names of relations to lower case and returns them.
pub(super) fn fold_relations(statement: &mut Statement) -> Vec<String> {
    let mut names = RelationNames::default();
    let ControlFlow::Continue(()) = statement.visit(&mut names);
    let names: Vec<String> = names.0.into_iter().collect();
    let ControlFlow::Continue(()) = statement.visit(&mut Qualifiers(&names));
    names
}

#[derive(Default)]
struct RelationNames(BTreeSet<String>);

impl RelationNames {
    fn fold(&mut self, ident: &mut Ident) {
        ident.value = ident.value.to_lowercase();
        self.0.insert(ident.value.clone());
    }

    fn fold_alias(&mut self, alias: &mut Option<TableAlias>) {
        if let Some(alias) = alias {
            self.fold(&mut alias.name);
        }
    }
}

impl VisitorMut for RelationNames {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.fold(&mut cte.alias.name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ObjectName) -> ControlFlow<Self::Break> {
        if let [ObjectNamePart::Identifier(ident)] = relation.0.as_mut_slice() {
            self.fold(ident);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Self::Break> {
        match factor {
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => self.fold_alias(alias),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Folds what stands before the first dot, where that is a relation.
struct Qualifiers<'a>(&'a [String]);

impl Qualifiers<'_> {
    fn fold(&self, ident: &mut Ident) {
        let folded = ident.value.to_lowercase();
        if self.0.contains(&folded) {
            ident.value = folded;
        }
    }
}

impl VisitorMut for Qualifiers<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice()
            {
                self.fold(ident);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::CompoundIdentifier(parts) = expr {
            self.fold(&mut parts[0]);
        }
        ControlFlow::Continue(())
    }
}

/// Spells the names in `* EXCEPT (…)` and `USING (…)` as the inputs do. DataFusion does not say where such a
/// name stands when it fails, so they are respelled beforehand from all `columns` there are.
pub(super) fn respell_lists(statement: &mut Statement, columns: &[Column]) {
    let ControlFlow::Continue(()) = statement.visit(&mut Lists(columns));
}

struct Lists<'a>(&'a [Column]);

impl Lists<'_> {
    fn respell(&self, ident: &mut Ident) {
        let spelled = |column: &&Column| column.name.eq_ignore_ascii_case(&ident.value);
        if self.0.iter().any(|column| column.name == ident.value) {
            return;
        }
        if let Some(column) = self.0.iter().find(spelled) {
            ident.value = column.name.clone();
        }
    }

    fn respell_wildcard(&self, options: &mut WildcardAdditionalOptions) {
        if let Some(except) = &mut options.opt_except {
            self.respell(&mut except.first_element);
            except.additional_elements.iter_mut().for_each(|ident| self.respell(ident));
        }
    }
}

impl VisitorMut for Lists<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
                self.respell_wildcard(options);
            }
        }
        for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
            if let JoinOperator::Join(JoinConstraint::Using(names))
            | JoinOperator::Inner(JoinConstraint::Using(names))
            | JoinOperator::Left(JoinConstraint::Using(names))
            | JoinOperator::LeftOuter(JoinConstraint::Using(names))
            | JoinOperator::Right(JoinConstraint::Using(names))
            | JoinOperator::RightOuter(JoinConstraint::Using(names))
            | JoinOperator::FullOuter(JoinConstraint::Using(names)) = &mut join.join_operator
            {
                for name in names {
                    if let [ObjectNamePart::Identifier(ident)] = name.0.as_mut_slice() {
                        self.respell(ident);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The aliases of all select lists: what ORDER BY and GROUP BY may name besides columns.
pub(super) fn select_aliases(statement: &mut Statement) -> Vec<Column> {
    #[derive(Default)]
    struct Aliases(Vec<Column>);
    impl VisitorMut for Aliases {
        type Break = std::convert::Infallible;
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
            self.0.extend(select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { alias, .. } => Some(Column::new_unqualified(alias.value.clone())),
                _ => None,
            }));
            ControlFlow::Continue(())
        }
    }
    let mut aliases = Aliases::default();
    let ControlFlow::Continue(()) = statement.visit(&mut aliases);
    aliases.0
}

/// Which names in the statement are meant.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    /// The one that starts at this line and column.
    At(u64, u64),
    /// All that are spelled so, where the place is unknown.
    Named(&'a str),
}

/// What is done to a name that DataFusion didn't find.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mend<'a> {
    /// Spell it as one of these columns.
    Respell(&'a [Column]),
    /// Plan on without it, to find the next error.
    Blank,
}

/// Mends the names that are meant and returns how many there were.
pub(super) fn mend(statement: &mut Statement, target: Target, mend: Mend) -> usize {
    let mut mender = Mender { target, mend, count: 0 };
    let ControlFlow::Continue(()) = statement.visit(&mut mender);
    mender.count
}

struct Mender<'a> {
    target: Target<'a>,
    mend: Mend<'a>,
    count: usize,
}

impl Mender<'_> {
    /// Mends `expr` if it is meant and returns the last part of its name as the user spelled it.
    fn mend(&mut self, expr: &mut Expr) -> Option<Ident> {
        let parts = match expr {
            Expr::Identifier(ident) => std::slice::from_mut(ident),
            Expr::CompoundIdentifier(parts) => parts.as_mut_slice(),
            _ => return None,
        };
        let is_meant = match self.target {
            Target::At(line, column) => {
                let start = parts[0].span.start;
                (start.line, start.column) == (line, column)
            }
            Target::Named(name) => parts.iter().any(|part| part.value == name),
        };
        if !is_meant {
            return None;
        }
        let spelled = parts.last()?.clone();
        match self.mend {
            Mend::Respell(columns) => {
                if !respell(parts, columns) {
                    return None;
                }
            }
            Mend::Blank => *expr = Expr::Value(Value::Null.with_empty_span()),
        }
        self.count += 1;
        Some(spelled)
    }
}

impl VisitorMut for Mender<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && let Some(spelled) = self.mend(expr)
            {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: spelled };
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        self.mend(expr);
        ControlFlow::Continue(())
    }
}

/// Spells the column in `column`, `relation.column` or either with fields behind as one of `columns`.
fn respell(parts: &mut [Ident], columns: &[Column]) -> bool {
    let matches = |column: &Column, qualifier: Option<&str>, name: &str| {
        column.name != name
            && column.name.to_lowercase() == name.to_lowercase()
            && qualifier.is_none_or(|qualifier| {
                column.relation.as_ref().is_none_or(|relation| relation.table().eq_ignore_ascii_case(qualifier))
            })
    };
    for i in (0..parts.len().min(2)).rev() {
        let qualifier = (i == 1).then(|| parts[0].value.as_str());
        if let Some(column) = columns.iter().find(|column| matches(column, qualifier, &parts[i].value)) {
            parts[i].value = column.name.clone();
            return true;
        }
    }
    false
}

/// An expression that is more than a name or a constant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compound {
    pub span: Span,
    /// `a + b`, `a LIKE b`, …: not a call.
    pub is_operation: bool,
}

/// All such expressions, the smallest first.
pub(super) fn compound_expressions(statement: &mut Statement) -> Vec<Compound> {
    #[derive(Default)]
    struct Compounds(Vec<(usize, Compound)>);
    impl VisitorMut for Compounds {
        type Break = std::convert::Infallible;
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
            let span = expr.span();
            let is_leaf = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
                || super::literals::is_number(expr);
            let is_operation = !matches!(expr, Expr::Function(_) | Expr::Cast { .. });
            if !is_leaf && span.start.line > 0 {
                self.0.push((expr.to_string().len(), Compound { span, is_operation }));
            }
            ControlFlow::Continue(())
        }
    }
    let mut compounds = Compounds::default();
    let ControlFlow::Continue(()) = statement.visit(&mut compounds);
    compounds.0.sort_by_key(|(length, _)| *length);
    compounds.0.into_iter().map(|(_, compound)| compound).collect()
}

/// Replaces the largest expression at `span` by NULL.
pub(super) fn blank_expression(statement: &mut Statement, span: Span) {
    struct Blank(Span, bool);
    impl VisitorMut for Blank {
        type Break = std::convert::Infallible;
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
            if !self.1 && expr.span() == self.0 {
                *expr = Expr::Value(Value::Null.with_empty_span());
                self.1 = true;
            }
            ControlFlow::Continue(())
        }
    }
    let ControlFlow::Continue(()) = statement.visit(&mut Blank(span, false));
}
