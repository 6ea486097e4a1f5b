//! Going on with a call whose event stream ended before the answer.
//!
//! The call is never sent again: a GET with `Last-Event-ID` asks for the rest of its
//! stream (2025-11-25, transports, "Resumability and Redelivery"; a server may also
//! end the connection on purpose and be polled this way). Bounded by the call's own
//! patience, and by a number of failures in a row.

use super::{
    core::Core,
    events::Events,
    patience::Patience,
    reply::{self, Trail, follow},
};
use crate::{backend::Fault, mcp::Message};
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

const FAILURES: u32 = 6;
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// A connection that stood this long was no failure, whether events came or not.
const STOOD: Duration = Duration::from_secs(1);

/// Waits for the answer to call `id` on streams that go on from `trail`.
pub(super) async fn resume(
    core: &Arc<Core>,
    id: u64,
    mut trail: Trail,
    patience: &mut Patience<'_>,
) -> Result<Message, Fault> {
    let mut other = |message| core.take(message, Some(id));
    let mut failures = 0;
    while failures < FAILURES {
        let Some(last) = trail.last_id.clone() else {
            break;
        };
        patience.hold(sleep(wait(&trail, failures))).await?;
        let began = Instant::now();
        let events = match patience.hold(ask(core, &trail)).await? {
            Asked::Stream(events) => events,
            Asked::Failed(reason) => {
                trail.reason = reason;
                failures += 1;
                continue;
            }
            Asked::Refused(reason) => return Err(Fault::Crashed { reason }),
        };
        let next = match follow(&core.site, *events, id, patience, &mut other).await? {
            Ok((message, _)) => return Ok(message),
            Err(next) => next,
        };
        let moved = next.last_id.as_ref().is_some_and(|id| *id != last);
        failures = match moved || began.elapsed() >= STOOD {
            true => 0,
            false => failures + 1,
        };
        trail = Trail {
            last_id: next.last_id.or(Some(last)),
            retry: next.retry.or(trail.retry),
            reason: next.reason,
        };
    }
    Err(Fault::Crashed {
        reason: trail.reason,
    })
}

/// As long as the server wishes, and longer after each failure.
fn wait(trail: &Trail, failures: u32) -> Duration {
    let doubled = FIRST_WAIT * 2_u32.pow(failures);
    match trail.retry {
        Some(retry) if failures == 0 => retry,
        Some(retry) => retry.max(doubled),
        None => doubled,
    }
}

enum Asked {
    Stream(Box<Events>),
    /// To be tried again.
    Failed(String),
    /// The server does not resume.
    Refused(String),
}

async fn ask(core: &Core, trail: &Trail) -> Asked {
    let response = match core.get(trail.last_id.as_ref()).await {
        Ok(response) => response,
        Err(fault) => return Asked::Failed(fault.to_string()),
    };
    let status = response.status();
    if status.is_success() && reply::is_events(response.headers()) {
        return Asked::Stream(Box::new(Events::new(response, core.site.settings.frame)));
    }
    let reason = format!("{}; resuming got {}", trail.reason, status.as_u16());
    // A conflict: the server has not noticed yet that the first stream is gone.
    match status.is_server_error() || status == StatusCode::CONFLICT {
        true => Asked::Failed(reason),
        false => Asked::Refused(reason),
    }
}
