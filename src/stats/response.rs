//! How the training loss answers an event: jump, area, recovery.
//!
//! Source: 2608.13156, "transition response". Its windows of 200, 1,000 and 5,000 steps belong to phases of 50,000 steps; here they
//! are the same fractions of whatever phase follows, and are named beside every number.

/// Lengths in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// The baseline is the mean over so many steps before the event; the smoothed loss averages so many after it.
    pub smooth: u64,
    /// The short area.
    pub short: u64,
    /// The long area.
    pub long: u64,
}

impl Windows {
    /// 0.4 %, 2 % and 10 % of a phase (200, 1,000, 5,000 of 50,000). At least 10 steps, and 3 of the losses that are logged `every` so
    /// many steps, are averaged, as one batch says little.
    pub fn of_phase(steps: u64, every: u64) -> Self {
        let smooth = (steps / 250).clamp(10, 200).max(every.saturating_mul(3));
        Self { smooth, short: (steps / 50).max(smooth), long: (steps / 10).max(smooth) }
    }
}

/// What happened after an event, in the unit of the loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Response {
    /// Mean of the steps before.
    pub baseline: f64,
    /// Loss of the first step after, minus the baseline.
    pub jump: f64,
    /// Mean over the short window of loss − baseline.
    pub area_short: f64,
    /// Mean over the long window of loss − baseline.
    pub area_long: f64,
    /// When the smoothed loss was back.
    pub recovery: Recovery,
}

/// The first time that the smoothed loss is at the baseline or below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// After so many steps since the event.
    After(u64),
    /// Not before the next event or the end.
    Not,
}

/// The response to an event at step `event` of a loss (step, value) in ascending steps, followed until `until`.
///
/// A loss at step s is that of the step that follows s. The smoothed loss is a centred mean over windows that lie wholly after the
/// event, told by their middle: a loss that never rose recovers after half a window (the paper's 101 of 200). `None` without a
/// finite value on each side.
pub fn response(loss: &[(u64, f64)], event: u64, until: u64, windows: Windows) -> Option<Response> {
    let mut total = 0.0;
    let running: Vec<f64> = std::iter::once(0.0)
        .chain(loss.iter().map(|(_, value)| {
            total += value;
            total
        }))
        .collect();
    let place = |step: u64| loss.partition_point(|(at, _)| *at < step);
    let mean = |from: u64, to: u64| {
        let (from, to) = (place(from), place(to));
        (from < to).then(|| (running[to] - running[from]) / (to - from) as f64)
    };
    let baseline = mean(event.saturating_sub(windows.smooth), event)?;
    let first = loss.get(place(event)).filter(|(step, _)| *step < until)?.1;
    let area = |width: u64| mean(event, (event + width).min(until)).map(|value| value - baseline);
    let recovery = loss[place(event)..place(until)]
        .iter()
        .map(|(step, _)| step + 1)
        .filter(|end| *end >= event + windows.smooth)
        .find(|end| mean(end - windows.smooth, *end).is_some_and(|smoothed| smoothed <= baseline))
        .map_or(Recovery::Not, |end| Recovery::After(end - event - windows.smooth / 2));
    let response =
        Response { baseline, jump: first - baseline, area_short: area(windows.short)?, area_long: area(windows.long)?, recovery };
    [response.baseline, response.jump, response.area_short, response.area_long].iter().all(|x| x.is_finite()).then_some(response)
}
