//! Runs sequences, shrinks those that fail, and says how to run them again.

use crate::fuse;
use crate::model::Model;
use crate::op::{self, Answer, No, Op, PATHS, Seen, Who};
use crate::volumes::Kind;
use crate::world::{self, World, agree, is_fuse, may_lag, names_of, who_of};
use std::ops::Range;
use volary::block::{How, On, When};
use volary_testkit::replay;
use volary_testkit::rng::Rng;

const OPS: usize = 60;

/// Runs the sequences of these seeds; with `VOLARY_SEED` set, only that one; with
/// `VOLARY_SEQS`, so many.
pub(crate) fn sequences(kind: Kind, seeds: Range<u64>) {
    if !fuse::can_mount() {
        return;
    }
    replay::seeds(seeds, |seed| {
        let mut rng = Rng::new(seed);
        let ops: Vec<Op> = (0..OPS).map(|_| random(&mut rng)).collect();
        replay::hold(seed, ops, world::be_impatient, |ops| run(kind, ops));
    });
}

fn random(rng: &mut Rng) -> Op {
    if rng.one_in(2) {
        op::named(rng)
    } else {
        op::held(rng)
    }
}

fn run(kind: Kind, ops: &[Op]) {
    let mut world = World::new(kind);
    let mut model = Model::new(world.ground.lease_most());
    for op in ops {
        step(&mut world, &mut model, *op);
    }
    end(&mut world, &mut model);
}

/// Does it on both, and compares what is said and kept.
fn step(world: &mut World, model: &mut Model, op: Op) {
    let mut after = model.clone();
    let Some(expected) = after.step(op) else {
        return;
    };
    if is_fuse(op) {
        world.let_kernel_hear(&names_of(op), model);
    }
    let mut answer = world.act(op, model);
    if may_lag(op) {
        world::until(&format!("{op:?} sees {expected:?}"), || {
            answer = world.act(op, model);
            agree(op, &answer, &expected)
        });
    }
    assert!(
        agree(op, &answer, &expected),
        "{op:?} was answered {answer:?}, expected was {expected:?}"
    );
    *model = after;
    world.settle(model);
}

/// All is closed, and then all see the same.
fn end(world: &mut World, model: &mut Model) {
    for who in [Who::Fuse, Who::Smb(0), Who::Smb(1)] {
        while model.open_of(who, 0).is_some() {
            step(world, model, Op::Close(who, 0));
        }
    }
    for (op, _) in world.everything(model) {
        step(world, model, op);
    }
    world.check_servers();
}

/// Sequences in whose middle the device fails for a while.
pub(crate) fn episodes(seeds: Range<u64>) {
    if !fuse::can_mount() {
        return;
    }
    replay::seeds(seeds, |seed| {
        let mut rng = Rng::new(seed);
        let ops: Vec<Op> = (0..40).map(|_| op::named(&mut rng)).collect();
        let fault = fault(&mut rng);
        replay::hold(seed, ops, world::be_impatient, |ops| fail(fault, ops));
    });
}

fn fault(rng: &mut Rng) -> (On, When, How) {
    let how = *rng.pick(&[How::Io, How::Io, How::Torn(1)]);
    let on = match how {
        How::Io => *rng.pick(&[On::Read, On::Write, On::Flush]),
        _ => On::Write,
    };
    (on, When::From(rng.below(4)), how)
}

/// A third of the steps on a device that works, a third on one that does not, and
/// the rest on one that works again. What failed is looked up past the servers;
/// what did not is as the model has it; all clients agree on all of it.
fn fail((on, when, how): (On, When, How), ops: &[Op]) {
    let mut world = World::new(Kind::Fat);
    let mut model = Model::new(world.ground.lease_most());
    let (before, rest) = ops.split_at(ops.len() / 3);
    let (during, after) = rest.split_at(rest.len() / 2);
    for op in before {
        step(&mut world, &mut model, *op);
    }
    let device = world.ground.device.clone().expect("a device");
    device.fail(on, when, how);
    let mut doubtful = [false; PATHS.len()];
    for op in during {
        let mut then = model.clone();
        let expected = then.step(*op).expect("by name");
        let answer = world.act(*op, &model);
        if is_in_the_way(*op, &answer) {
            continue;
        }
        if answer == Err(No::Io) {
            names_of(*op).iter().for_each(|name| doubtful[*name] = true);
        } else if names_of(*op).iter().any(|name| doubtful[*name]) || who_of(*op) == Who::Fuse {
            // Of what is known there, the mount's kernel may have heard less.
            names_of(*op).iter().for_each(|name| doubtful[*name] = true);
        } else if !matches!(op, Op::List(..)) {
            assert!(
                agree(*op, &answer, &expected),
                "{op:?} was answered {answer:?}, expected was {expected:?}"
            );
        }
        model = then;
    }
    device.heal();
    resolve(&world, &mut model, &doubtful);
    for op in after {
        // The volume may refuse changes for good.
        let refused = after_fault(&mut world, &mut model, *op);
        if refused {
            break;
        }
    }
    for (op, answer) in world.everything(&model) {
        let expected = model.step(op).expect("by name");
        assert!(
            agree(op, &answer, &expected),
            "{op:?} was answered {answer:?}, the others see {expected:?}"
        );
    }
    world.check_servers();
}

/// Returns whether it is what the NFS server keeps open for a while that is not renamed over:
/// it could not be told to let go.
fn is_in_the_way(op: Op, answer: &Answer) -> bool {
    *answer == Err(No::Access) && matches!(op, Op::Rename(Who::Smb(_), ..))
}

/// True if the volume takes no changes any more.
fn after_fault(world: &mut World, model: &mut Model, op: Op) -> bool {
    world.let_kernel_hear(&names_of(op), model);
    let mut then = model.clone();
    let expected: Answer = then.step(op).expect("by name");
    let answer = world.act(op, model);
    if answer == Err(No::Io) {
        return true;
    }
    if is_in_the_way(op, &answer) {
        return false;
    }
    if !may_lag(op) {
        assert!(
            agree(op, &answer, &expected),
            "{op:?} was answered {answer:?}, expected was {expected:?}"
        );
    }
    *model = then;
    false
}

/// What a failed step left, as the session has it.
fn resolve(world: &World, model: &mut Model, doubtful: &[bool]) {
    for (name, doubtful) in doubtful.iter().enumerate() {
        let truth = world.truth(name);
        if *doubtful {
            model.names.remove(&name);
            if let Some(content) = truth {
                model.names.insert(name, model.contents.len());
                model.contents.push(content);
            }
            continue;
        }
        let file = model.names.get(&name);
        let content = file.map(|file| model.contents[*file].clone());
        let (truth, content) = (truth.map(Seen::Data), content.map(Seen::Data));
        assert_eq!(truth, content, "{} after the fault", PATHS[name]);
    }
}
