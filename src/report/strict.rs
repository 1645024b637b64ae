//! Filters that take the name of a field, made as strict as a field written out.
//!
//! Owns one gap: the engine's strict mode refuses `{{ claim.verdit }}`, but its `map`, `selectattr`, `sort` and the like take an item without the
//! field for one whose field is undefined. Invariant: with a default given they stay as lenient as the writer asks for.

use minijinja::value::{Kwargs, Rest, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value, filters};

/// Replaces the lenient filters.
pub fn install(environment: &mut Environment<'static>) {
    add(environment, "map", false, Value::from_function(filters::map));
    add(environment, "sort", false, Value::from_function(filters::sort));
    add(environment, "unique", false, Value::from_function(filters::unique));
    add(environment, "min", false, Value::from_function(filters::min));
    add(environment, "max", false, Value::from_function(filters::max));
    add(environment, "join", false, Value::from_function(filters::join));
    add(environment, "sum", true, Value::from_function(filters::sum));
    add(environment, "groupby", true, Value::from_function(filters::groupby));
    add(environment, "selectattr", true, Value::from_function(filters::selectattr));
    add(environment, "rejectattr", true, Value::from_function(filters::rejectattr));
}

/// `first`: the filter's first plain argument names the field.
fn add(environment: &mut Environment<'static>, name: &'static str, first: bool, filter: Value) {
    environment.add_filter(name, move |state: &mut State, value: Value, rest: Rest<ValueOrKwargs>| -> Result<Value, Error> {
        let arguments: Vec<Value> = rest.0.into_iter().map(ValueOrKwargs::into_value).collect();
        let (plain, named): (&[Value], Kwargs) = from_args(&arguments)?;
        let field = named.peek::<String>("attribute").ok();
        let field = field.or_else(|| plain.first().filter(|_| first)?.as_str().map(str::to_owned));
        if let Some(fields) = field.filter(|_| !named.has("default")) {
            for field in fields.split(',').map(str::trim) {
                for item in value.try_iter()? {
                    has(&item, field)?;
                }
            }
        }
        let arguments: Vec<Value> = std::iter::once(value).chain(arguments).collect();
        filter.call(state, &arguments)
    });
}

fn has(item: &Value, field: &str) -> Result<(), Error> {
    let mut at = item.clone();
    for part in field.split('.') {
        at = match part.parse::<usize>() {
            Ok(index) => at.get_item_by_index(index)?,
            Err(_) => at.get_attr(part)?,
        };
        if at.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, format!("there is no field `{field}`")));
        }
    }
    Ok(())
}
