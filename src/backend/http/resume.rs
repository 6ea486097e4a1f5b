//! Going on with a call whose event stream ended before the answer.
//!
//! The call is never sent again: a GET with `Last-Event-ID` asks for the rest of its
//! stream (2025-11-25, transports, "Resumability and Redelivery"; a server may also
//! end the connection on purpose and be polled this way). Bounded by the call's own
//! patience, and by a number of failures in a row.

use super::{
    link::Core,
    patience::Patience,
    reply::{self, Trail, follow},
};
use crate::{backend::Fault, mcp::Message};
use http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

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
        let wait = FIRST_WAIT * 2_u32.pow(failures);
        let wait = trail
            .retry
            .map_or(wait, |r| r.max(if failures == 0 { r } else { wait }));
        patience.hold(tokio::time::sleep(wait)).await?;
        let began = Instant::now();
        let sent = core.site.send(|uri| core.get_request(uri, Some(&last)));
        let response = match patience.hold(sent).await? {
            Ok(response) => response,
            Err(fault) => {
                trail.reason = fault.to_string();
                failures += 1;
                continue;
            }
        };
        let status = response.status();
        if status.is_server_error() || status == StatusCode::CONFLICT {
            trail.reason = format!("answered {} to the resumption", status.as_u16());
            failures += 1;
            continue;
        }
        if !status.is_success() || !reply::is_events(response.headers()) {
            let reason = format!("{}; resuming got {}", trail.reason, status.as_u16());
            return Err(Fault::Crashed { reason });
        }
        let events = super::events::Events::new(response, core.site.settings.frame);
        let next = match follow(&core.site, events, id, patience, &mut other).await? {
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
