//! `sessions show`.

use clap::{ArgMatches, Command};
use session_proto::client::SessionClient;
use session_proto::v1::{GetSessionRequest, get_session_request::By};

use super::super::output::{CommandFailure, CommandOutput, Exit};
use super::super::service::ServiceAddress;
use super::{handle_argument, resource, text};

pub(super) struct ShowCommand {
    handle: String,
}

pub(super) fn command() -> Command {
    Command::new("show")
        .about("Shows a session: everything but its tokens")
        .arg(handle_argument("Public name of the session, as lists and logs show it").required(true))
}

impl ShowCommand {
    pub(super) fn read(given: &ArgMatches) -> Self {
        Self {
            handle: text(given, "handle").unwrap_or_default(),
        }
    }

    pub(super) async fn run(
        self,
        client: &SessionClient,
        address: &ServiceAddress,
    ) -> Result<CommandOutput, CommandFailure> {
        let request = GetSessionRequest {
            by: Some(By::Handle(self.handle)),
        };
        let response = client
            .get_session(request)
            .await
            .map_err(|error| address.failure(&error))?;
        let session = response.session.unwrap_or_default();
        Ok(CommandOutput {
            text: resource::lines(&session),
            json: resource::whole(&session),
            exit: Exit::Done,
        })
    }
}
