//! A small rmcp server: `rmcp_server stdio` or `rmcp_server http PORT` (at `/mcp`).

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    handler::server::{router::tool::ToolRouter, wrapper::Parameters},
    model::{CallToolResult, ContentBlock, ProgressNotificationParam},
    schemars,
    service::RequestContext,
    tool, tool_handler, tool_router,
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Clone)]
struct Tools {
    #[expect(
        dead_code,
        reason = "read by the code that the tool_handler macro makes"
    )]
    tool_router: ToolRouter<Tools>,
}

#[tool_router]
impl Tools {
    fn new() -> Self {
        Self {
            tool_router: Self::tool_router(),
        }
    }

    #[tool(description = "Add two integers")]
    fn sum(&self, Parameters(Sum { a, b }): Parameters<Sum>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Always an error result")]
    fn fail(&self) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(
            "deliberate failure",
        )]))
    }

    #[tool(description = "Reports progress three times")]
    async fn steps(&self, context: RequestContext<RoleServer>) -> String {
        let Some(token) = context.meta.get_progress_token() else {
            return "no progress token".to_owned();
        };
        for step in 1..=3 {
            let note =
                ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
            // A client that has gone is no concern of this tool.
            let _ = context.peer.notify_progress(note).await;
            // So that no note is overtaken by the answer.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        "done".to_owned()
    }
}

#[tool_handler]
impl ServerHandler for Tools {}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => {
            Tools::new().serve(stdio()).await?.waiting().await?;
        }
        ["http", port] => {
            let service: StreamableHttpService<Tools, LocalSessionManager> =
                StreamableHttpService::new(
                    || Ok(Tools::new()),
                    Default::default(),
                    StreamableHttpServerConfig::default(),
                );
            let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse()?)).await?;
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
        }
        _ => anyhow::bail!("usage: rmcp_server stdio | http PORT"),
    }
    Ok(())
}
