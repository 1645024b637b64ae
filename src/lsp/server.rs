//! The protocol: messages in, answers out, one at a time.

use std::collections::BTreeMap;

use lsp_server::{Connection, ErrorCode, ExtractError, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics,
};
use lsp_types::request::{
    CodeLensRequest, Completion, DocumentSymbolRequest, Formatting, GotoDefinition, HoverRequest, PrepareRenameRequest,
    References, Rename, Request as _,
};
use lsp_types::{
    CodeLensOptions, CompletionOptions, DocumentSymbolResponse, GotoDefinitionResponse, Hover, HoverContents,
    HoverProviderCapability, Location, MarkupContent, MarkupKind, OneOf, PrepareRenameResponse, PublishDiagnosticsParams,
    RenameOptions, ServerCapabilities, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    WorkDoneProgressOptions,
};

use super::document::{Document, path_of};
use super::{answer, completion, hover};
use crate::source::World;

/// Serves an editor until it says goodbye; `world` reads the files beside its texts.
pub fn serve(connection: &Connection, world: &dyn World) -> Result<(), String> {
    let told = serde_json::to_value(capabilities()).map_err(|error| error.to_string())?;
    connection.initialize(told).map_err(|error| error.to_string())?;
    let mut open: BTreeMap<String, Document> = BTreeMap::new();
    for message in &connection.receiver {
        match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|error| error.to_string())? {
                    return Ok(());
                }
                send(connection, Message::Response(answered(&open, request)))?;
            }
            Message::Notification(notification) => {
                if let Some(said) = heard(&mut open, world, notification) {
                    send(connection, Message::Notification(Notification::new(PublishDiagnostics::METHOD.to_owned(), said)))?;
                }
            }
            Message::Response(_) => {}
        }
    }
    Ok(())
}

fn send(connection: &Connection, message: Message) -> Result<(), String> {
    connection.sender.send(message).map_err(|error| error.to_string())
}

fn capabilities() -> ServerCapabilities {
    let no_progress = WorkDoneProgressOptions::default();
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![" ".into(), "(".into()]),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: no_progress,
        })),
        document_formatting_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        ..ServerCapabilities::default()
    }
}

/// What an editor tells; the diagnostics of the text that it tells about.
fn heard(
    open: &mut BTreeMap<String, Document>,
    world: &dyn World,
    notification: Notification,
) -> Option<PublishDiagnosticsParams> {
    let (uri, text) = match notification.method.as_str() {
        DidOpenTextDocument::METHOD => {
            let opened: lsp_types::DidOpenTextDocumentParams = serde_json::from_value(notification.params).ok()?;
            (opened.text_document.uri, opened.text_document.text)
        }
        DidChangeTextDocument::METHOD => {
            let changed: lsp_types::DidChangeTextDocumentParams = serde_json::from_value(notification.params).ok()?;
            // Texts are sent whole, so that the last one is the text.
            (changed.text_document.uri, changed.content_changes.into_iter().next_back()?.text)
        }
        DidCloseTextDocument::METHOD => {
            let closed: lsp_types::DidCloseTextDocumentParams = serde_json::from_value(notification.params).ok()?;
            open.remove(closed.text_document.uri.as_str());
            return Some(PublishDiagnosticsParams { uri: closed.text_document.uri, diagnostics: Vec::new(), version: None });
        }
        _ => return None,
    };
    let path = path_of(&uri).unwrap_or_else(|| uri.as_str().into());
    let document = Document::new(world, path, text);
    let diagnostics = answer::diagnostics(&document, &uri);
    open.insert(uri.as_str().to_owned(), document);
    Some(PublishDiagnosticsParams { uri, diagnostics, version: None })
}

fn answered(open: &BTreeMap<String, Document>, request: Request) -> Response {
    let id = request.id.clone();
    let at = |place: &TextDocumentPositionParams| {
        let document = open.get(place.text_document.uri.as_str())?;
        Some((document, document.offset(place.position)))
    };
    match request.method.as_str() {
        HoverRequest::METHOD => reply::<HoverRequest>(request, |asked| {
            let (document, offset) = at(&asked.text_document_position_params)?;
            let value = hover::hover(document, offset)?;
            Some(Hover { contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value }), range: None })
        }),
        Completion::METHOD => reply::<Completion>(request, |asked| {
            let (document, offset) = at(&asked.text_document_position)?;
            Some(completion::completions(document, offset).into())
        }),
        GotoDefinition::METHOD => reply::<GotoDefinition>(request, |asked| {
            let place = asked.text_document_position_params;
            let (document, offset) = at(&place)?;
            answer::definition(document, &place.text_document.uri, offset).map(GotoDefinitionResponse::Scalar)
        }),
        References::METHOD => reply::<References>(request, |asked| {
            let place = asked.text_document_position;
            let (document, offset) = at(&place)?;
            let ranges = answer::references(document, offset).into_iter();
            Some(ranges.map(|range| Location { uri: place.text_document.uri.clone(), range }).collect())
        }),
        PrepareRenameRequest::METHOD => reply::<PrepareRenameRequest>(request, |place| {
            let (document, offset) = at(&place)?;
            answer::renamable(document, offset).map(PrepareRenameResponse::Range)
        }),
        Rename::METHOD => renamed(id, request, at),
        Formatting::METHOD => {
            reply::<Formatting>(request, |asked| open.get(asked.text_document.uri.as_str()).map(answer::format))
        }
        DocumentSymbolRequest::METHOD => reply::<DocumentSymbolRequest>(request, |asked| {
            let document = open.get(asked.text_document.uri.as_str())?;
            Some(DocumentSymbolResponse::Nested(answer::symbols(document)))
        }),
        CodeLensRequest::METHOD => {
            reply::<CodeLensRequest>(request, |asked| open.get(asked.text_document.uri.as_str()).map(answer::lenses))
        }
        method => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("no method `{method}`")),
    }
}

fn renamed<'d>(
    id: RequestId,
    request: Request,
    at: impl Fn(&TextDocumentPositionParams) -> Option<(&'d Document, usize)>,
) -> Response {
    let asked = match request.extract::<lsp_types::RenameParams>(Rename::METHOD) {
        Ok((_, asked)) => asked,
        Err(error) => return refused(id, &error),
    };
    let place = &asked.text_document_position;
    let edit = match at(place) {
        Some((document, offset)) => answer::rename(document, &place.text_document.uri, offset, &asked.new_name),
        None => Err("this text is not open".to_owned()),
    };
    match edit {
        Ok(edit) => Response::new_ok(id, edit),
        Err(reason) => Response::new_err(id, ErrorCode::InvalidParams as i32, reason),
    }
}

fn reply<R: lsp_types::request::Request>(request: Request, answer: impl FnOnce(R::Params) -> R::Result) -> Response
where
    R::Params: serde::de::DeserializeOwned,
    R::Result: serde::Serialize,
{
    let id = request.id.clone();
    match request.extract::<R::Params>(R::METHOD) {
        Ok((id, asked)) => Response::new_ok(id, answer(asked)),
        Err(error) => refused(id, &error),
    }
}

fn refused(id: RequestId, error: &ExtractError<Request>) -> Response {
    Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string())
}
