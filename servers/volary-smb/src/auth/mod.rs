//! Authentication: SPNEGO (RFC 4178, MS-SPNG) around NTLM (MS-NLMP).
//!
//! [`Exchange`] takes a client's tokens and returns the answers. It knows nothing of SMB, and may
//! use `config`. Only NTLMv2 is accepted, from users with a password.

mod der;
mod logon;
mod messages;
mod ntlm;
mod spnego;

use crate::config::User;
use logon::FIRST_TOKEN_MAX;
pub(crate) use logon::{Host, LoggedOn, Refused};
pub(crate) use messages::file_time;
use ntlm::{Accepted, Ntlm};
use spnego::{MECH_NTLM, State, Token};

/// The answer to a token.
#[derive(Debug)]
pub(crate) enum Step {
    /// The server expects another token.
    Continue(Vec<u8>),
    /// The logon succeeded.
    Done(Vec<u8>, LoggedOn),
}

/// Returns the token that a server offers first: it speaks NTLM.
pub(crate) fn offer() -> Vec<u8> {
    spnego::offer()
}

/// Returns the user name in a token, if this is the token whose password is checked. The name is
/// empty for an anonymous user, or one without NTLMv2.
pub(crate) fn claimed(token: &[u8]) -> Option<String> {
    if token.starts_with(&messages::SIGNATURE) {
        return ntlm::claimed(token);
    }
    match spnego::parse(token).ok()? {
        Token::Init(init) => init.token.and_then(ntlm::claimed),
        Token::Response(response) => response.token.and_then(ntlm::claimed),
    }
}

/// Returns whether the client's name means this configured user.
pub(crate) fn is_called(user: &User, name: &str) -> bool {
    ntlm::upper(&user.name) == ntlm::upper(name)
}

/// A logon in progress.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    ntlm: Ntlm,
    /// The mechanisms as the client wrote them. `None` if it speaks NTLM without SPNEGO.
    mechanisms: Option<Vec<u8>>,
    /// The client prefers another mechanism. It must then sign its list of mechanisms.
    needs_mic: bool,
}

impl Exchange {
    /// Processes a token.
    ///
    /// # Errors
    /// [`Refused`]: the exchange is over.
    pub(crate) fn step(&mut self, token: &[u8], host: &Host<'_>) -> Result<Step, Refused> {
        if token.starts_with(&messages::SIGNATURE) {
            return self.bare(token, host);
        }
        match spnego::parse(token)? {
            Token::Init(init) => {
                if self.mechanisms.is_some() || token.len() > FIRST_TOKEN_MAX {
                    return Err(Refused::Malformed);
                }
                self.mechanisms = Some(init.mechanisms.to_vec());
                let mut offered = init.offered();
                let is_first = offered.next() == Some(MECH_NTLM);
                if is_first {
                    return match init.token {
                        Some(ntlm) => self.wrapped(ntlm, None, host),
                        None => Ok(Step::Continue(spnego::select(State::Incomplete))),
                    };
                }
                if !offered.any(|mech| mech == MECH_NTLM) {
                    return Err(Refused::Logon);
                }
                self.needs_mic = true;
                Ok(Step::Continue(spnego::select(State::RequestMic)))
            }
            Token::Response(response) => {
                if self.mechanisms.is_none() {
                    return Err(Refused::Malformed);
                }
                let ntlm = response.token.ok_or(Refused::Malformed)?;
                self.wrapped(ntlm, response.mic, host)
            }
        }
    }

    fn bare(&mut self, token: &[u8], host: &Host<'_>) -> Result<Step, Refused> {
        if self.mechanisms.is_some() {
            return Err(Refused::Malformed);
        }
        Ok(match self.ntlm.step(token, host)? {
            ntlm::Step::Challenge(challenge) => Step::Continue(challenge),
            ntlm::Step::Accepted(accepted) => Step::Done(Vec::new(), accepted.logged_on()),
        })
    }

    fn wrapped(
        &mut self,
        token: &[u8],
        mic: Option<&[u8]>,
        host: &Host<'_>,
    ) -> Result<Step, Refused> {
        match self.ntlm.step(token, host)? {
            ntlm::Step::Challenge(challenge) => Ok(Step::Continue(spnego::challenge(&challenge))),
            ntlm::Step::Accepted(accepted) => {
                let mic = self.check_mic(&accepted, mic)?;
                let token = spnego::completed(mic.as_ref().map(|m| &m[..]));
                Ok(Step::Done(token, accepted.logged_on()))
            }
        }
    }

    /// Checks the client's signature of its list of mechanisms. Returns the server's signature.
    fn check_mic(
        &self,
        accepted: &Accepted,
        mic: Option<&[u8]>,
    ) -> Result<Option<[u8; 16]>, Refused> {
        let mechanisms = self.mechanisms.as_deref().unwrap_or_default();
        match mic {
            Some(mic) if accepted.verify(mechanisms, mic) => Ok(Some(accepted.sign(mechanisms))),
            Some(_) => Err(Refused::Logon),
            None if self.needs_mic => Err(Refused::Logon),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use super::ntlm::tests::Client;
}
