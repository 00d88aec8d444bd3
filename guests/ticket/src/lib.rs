//! The steps of a request: write it, remind, close it. None of them talks to the ticket system; each asks the host
//! to, in the same commit as its move.

use interlock::{Done, Entity, Failure, steps, to};
use serde::{Deserialize, Serialize};
use serde_json::json;

const REMINDERS_MAX: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Data {
    project: String,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    reminders: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Run again after a crash it asks again, and what it asked before was never committed: there is one ticket.
fn file(request: &Entity) -> Result<Done, Failure> {
    let data: Data = request.data()?;
    let body = json!({ "title": data.title, "reference": request.id() });
    request.effect("tickets").param("project", data.project).body(&body).request()?;
    Ok(request.transition(to("asking"))?)
}

fn remind(request: &Entity) -> Result<Done, Failure> {
    let mut data: Data = request.data()?;
    if data.reminders >= REMINDERS_MAX {
        return Ok(request.transition(to("overdue"))?);
    }
    data.reminders += 1;
    let (project, ticket) = (&data.project, ticket(&data)?);
    let body = json!({ "text": format!("reminder {}", data.reminders) });
    request.effect("comments").param("project", project).param("ticket", ticket).body(&body).request()?;
    Ok(request.transition(to("open").data(&data))?)
}

fn close(request: &Entity) -> Result<Done, Failure> {
    let data: Data = request.data()?;
    let outputs = json!({ "ticket": ticket(&data)?, "answer": data.answer });
    Ok(request.transition(to("done").outputs(&outputs))?)
}

fn ticket(data: &Data) -> Result<&str, Failure> {
    data.ticket.as_deref().ok_or_else(|| Failure::permanent("there is no ticket yet").code("no-ticket"))
}

steps!(file, remind, close);
