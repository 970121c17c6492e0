//! The target `wire`: messages from the network.

use windrow_document::doc;
use windrow_wire::{Header, OpCode, Reply, Request, read_header, read_message, write_reply};

/// The input is a stream of messages. A valid request gets a reply, which must be a valid message.
pub fn run(bytes: &[u8]) {
    let (mut input, mut spare) = (bytes, Vec::new());
    while let Ok(Some(header)) = read_header(&mut input) {
        let mut buffer = Vec::new();
        if read_message(&mut input, &header, &mut buffer).is_err() {
            return;
        }
        if let Ok(request) = Request::parse(&header, buffer, &mut spare) {
            check_request(&request, &mut spare);
        }
    }
}

fn check_request(request: &Request, spare: &mut Vec<u8>) {
    let _ = (
        request.command(),
        request.database(),
        request.body().to_string(),
    );
    for name in request.sequence_names() {
        let documents = request.documents(name);
        if let Ok(Some(documents)) = documents {
            documents
                .iter()
                .for_each(|document| drop(document.to_string()));
        }
    }
    let mut output = Vec::new();
    let reply = Reply::ok(doc! { "a": 1 });
    write_reply(&mut output, &request.reply_to(), &reply, 1, spare).expect("a reply");
    if request.reply_to().expects_reply() {
        let header: Option<&[u8; 16]> = output.first_chunk();
        let header = Header::parse(header.expect("a header")).expect("a header");
        assert_eq!(header.length, output.len());
        assert_ne!(header.op_code, OpCode::QUERY);
    }
}
