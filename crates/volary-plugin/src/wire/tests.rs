//! Values that are written can be read again, and invalid bytes are refused.

use super::*;
use volary_core::{NodeId, SetAttr};

#[test]
fn a_head_comes_back_and_one_that_is_too_long_is_none() {
    let head = Head {
        len: 7,
        tag: Tag::Reply,
        id: 9,
        status: -3,
    };
    assert_eq!(Head::parse(&head.to_bytes()), Some(head));
    let long = Head {
        len: FRAME_MAX as u32 + 1,
        ..head
    };
    assert_eq!(Head::parse(&long.to_bytes()), None);
}

#[test]
fn a_request_comes_back_and_no_other_length_of_it_does() {
    let request = Request::MkDir {
        dir: NodeId::new(3, 4).unwrap(),
        name: b"name",
        set: SetAttr::owned(0o755, 1, 2),
    };
    let body = bytes(&request);
    let back: Request<'_> = finished(&body).unwrap();
    assert_eq!(format!("{back:?}"), format!("{request:?}"));
    for len in 0..body.len() {
        assert!(finished::<Request<'_>>(&body[..len]).is_none(), "{len}");
    }
    let more = [&body[..], &[0]].concat();
    assert!(finished::<Request<'_>>(&more).is_none());
}

#[test]
fn a_list_that_announces_more_than_is_there_takes_no_memory() {
    let mut body = u32::MAX.to_le_bytes().to_vec();
    body.extend_from_slice(&[0; 64]);
    assert!(finished::<Vec<Listed<'_>>>(&body).is_none());
}
