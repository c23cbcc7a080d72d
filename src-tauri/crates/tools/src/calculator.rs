//! The calculator: fend, in a child process, since nested and recursive expressions overflow its stack.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt, evaluate_with_interrupt};
use serde_json::{Map, Value, json};
use system::child::Child;

use crate::process::{Computation, ToolProcess};
use crate::tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, text_of};

/// Maximum time of a calculation.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum characters of an expression.
const LONGEST: usize = 2_000;

/// The calculator.
pub struct Calculator {
    info: Arc<ToolInfo>,
    program: Child,
}

impl Calculator {
    /// Makes the tool. `program` runs [`serve`](crate::serve).
    pub fn new(program: Child) -> Calculator {
        let description = "Calculates exactly, with units. \
            Examples: 17.5% of 240; 12 * (3 + 4); sqrt(2); 5 miles to km; 20!; 72 °F to °C";
        let parameters = json!({
            "type": "object",
            "properties": { "expression": { "type": "string", "maxLength": LONGEST } },
            "required": ["expression"],
            "additionalProperties": false,
        });
        let effects = Effects::default();
        let info = ToolInfo::built_in("calculator", "Calculator", description, parameters, effects);
        Calculator {
            info: Arc::new(info),
            program,
        }
    }
}

impl Tool for Calculator {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let expression = text_of(arguments, "expression").to_owned();
        let mut process =
            ToolProcess::start(&self.program, &Computation::Calculate { expression }, run)?;
        let calculated: Result<String, String> = process.receive(run)?;
        match calculated {
            Ok(text) => Ok(ToolOutput { text }),
            Err(fault) => Err(ToolError::Failed(format!(
                "This cannot be calculated: {fault}."
            ))),
        }
    }
}

/// Evaluates an expression, in the child.
pub fn calculate(expression: &str) -> Result<String, String> {
    let end = TimeLimit(Instant::now() + LIMIT);
    // Without a source of random numbers and exchange rates fend has neither.
    let result = evaluate_with_interrupt(expression, &mut Context::new(), &end);
    match result {
        Ok(result) if result.output_is_empty() => Err("it has no value".to_owned()),
        Ok(result) => Ok(result.get_main_result().to_owned()),
        Err(_) if end.should_interrupt() => {
            Err(format!("it takes more than {} seconds", LIMIT.as_secs()))
        }
        Err(error) => Err(error),
    }
}

/// The time at which fend gives up.
struct TimeLimit(Instant);

impl Interrupt for TimeLimit {
    fn should_interrupt(&self) -> bool {
        Instant::now() >= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::{ended, program, within};

    fn calculated(expression: &str) -> Result<String, String> {
        let arguments = Map::from_iter([("expression".to_owned(), expression.into())]);
        within(Duration::from_secs(30), |run| {
            let output = Calculator::new(program()).run(&arguments, run);
            output
                .map(|output| output.text)
                .map_err(|error| error.to_string())
        })
    }

    #[test]
    fn expressions_have_exact_values_and_units() {
        for (expression, value) in [
            ("0.1 + 0.2", "0.3"),
            ("17.5% of 240", "42"),
            ("2**10", "1024"),
            ("20!", "2432902008176640000"),
            ("100 lb to kg", "45.359237 kg"),
            ("sqrt(2)", "approx. 1.4142135624"),
            ("@2024-02-28 + 2 days", "Friday, 1 March 2024"),
        ] {
            assert_eq!(calculated(expression).as_deref(), Ok(value), "{expression}");
        }
    }

    #[test]
    fn what_cannot_be_calculated_is_said() {
        for (expression, fault) in [
            ("1/0", "division by zero"),
            ("foo", "unknown identifier 'foo'"),
            ("5 USD to EUR", "exchange rates are not available"),
            ("roll d6", "random numbers are not available"),
        ] {
            let says = format!("This cannot be calculated: {fault}.");
            assert_eq!(calculated(expression), Err(says), "{expression}");
        }
    }

    #[test]
    fn endless_and_bottomless_expressions_end() {
        let nested = "(".repeat(900) + "1" + &")".repeat(900);
        for expression in ["(x: x x) (x: x x)", &nested, "9^9^9^9"] {
            let began = Instant::now();
            let says = calculated(expression);
            assert!(began.elapsed() < Duration::from_secs(8), "{expression:.20}");
            assert!(
                matches!(says.as_deref(), Ok("1"))
                    || says
                        .as_ref()
                        .is_err_and(|it| it.contains("nested") || it.contains("seconds")),
                "{expression:.20}: {says:?}"
            );
        }
    }

    #[test]
    fn a_calculation_is_cancelled_at_once_and_ends_at_its_deadline() {
        let arguments = Map::from_iter([("expression".to_owned(), "9^9^9^9".into())]);
        let calculator = Calculator::new(program());
        ended(|run| calculator.run(&arguments, run));
        let late = within(Duration::from_millis(300), |run| {
            calculator.run(&arguments, run)
        });
        assert_eq!(late, Err(ToolError::TimedOut));
    }
}
