//! What README.md and SECURITY.md claim, and the tests that hold each claim.
//!
//! A claim without a test is taken out of the page, or given one; what the pages say about
//! speed is measured by `volary bench peers`, and the figures are in bench/README.md.

use crate::mounting::Mounting;
use crate::sandbox::Sandbox;
use crate::serving::can_mount;
use std::fs;
use std::path::{Path, PathBuf};

/// Words of a page, and the names of tests.
type Claims = &'static [(&'static str, &'static [&'static str])];

const README: Claims = &[
    (
        "It makes, checks, repairs, tunes and draws volumes as well.",
        &[
            "a_volume_is_made_checked_shown_and_tuned",
            "damage_is_mended_and_nothing_is_lost_untold",
        ],
    ),
    (
        "for everything but a mount no privileges",
        &[
            "a_new_volume_belongs_to_who_made_it",
            "a_new_volume_is_written_through_nfs_by_who_made_it",
        ],
    ),
    (
        "Today it reads and writes FAT12, FAT16 and FAT32",
        &[
            "fsck_fat_mtools_and_sleuthkit_read_what_we_write",
            "ffs_volumes_are_made_in_both_formats_and_byte_orders",
            "linux_reads_what_we_write_and_we_what_linux_writes",
            "a_tree_goes_in_and_comes_out_the_same",
            "a_directory_of_the_host_is_a_volume_like_any_other",
            "an_nfs_export_keeps_its_word",
            "an_image_takes_no_changes_and_is_not_made",
            "what_mke2fs_put_in_comes_out_whatever_the_features",
            "volumes_of_linux_can_be_looked_at_copied_and_checked",
            "what_ntfs_3g_writes_is_read_as_it_reads_it",
            "volumes_of_windows_can_be_looked_at_copied_and_checked",
        ],
    ),
    (
        "serves a small volume in memory to this machine's own clients until Ctrl-C",
        &[
            "nothing_named_is_something_to_look_at",
            "it_says_how_to_mount_each_volume",
        ],
    ),
    (
        "And this makes a volume in a file, puts a folder on it and checks it:",
        &["the_commands_of_the_first_page_work"],
    ),
    (
        "What a command would cost on another disk, without writing to the image",
        &[
            "images_stay_as_they_are_whatever_the_command_writes",
            "a_command_prints_what_it_always_does_and_the_same_time_each_run",
        ],
    ),
    (
        "Whether a file system keeps its word, ours or the one that is mounted there:",
        &[
            "what_a_volume_holds_is_read_alike_in_every_way",
            "writing_touches_nothing_beside_its_own_directory",
            "writing_on_the_host_touches_nothing_beside_its_own_directory",
        ],
    ),
    (
        "All files of a tree, each one whole, in the order in which they lie on the disk",
        &[
            "sums_of_volumes_are_those_of_sha256sum",
            "an_archive_of_a_volume_is_that_of_its_tree",
            "lines_that_fit_are_those_of_grep",
            "fresh_volumes_of_ours",
            "files_come_in_the_order_of_their_places",
        ],
    ),
    (
        "In Rust, a volume by its paths",
        &["a_tree_goes_into_a_new_image_in_ten_lines_and_comes_out_of_it"],
    ),
    (
        "In C, and all that calls C",
        &[
            "a_program_in_c_is_linked_with_the_shared_library",
            "a_program_in_c_is_linked_with_the_static_library",
        ],
    ),
    (
        "A format, a scheme or a layer of your own goes into a command of your own",
        &["what_gnu_tar_made_is_a_volume_that_keeps_the_contract"],
    ),
    (
        "it reads and writes FAT images, is built from fewer than 45 crates, and compiles no C",
        &["fat_alone_is_built_from_few_crates_and_no_c"],
    ),
    (
        "Served, it needs no FUSE:",
        &[
            "what_a_client_writes_is_on_the_image_when_it_ends",
            "samba_s_client_copies_in_and_out",
        ],
    ),
    (
        "A directory is a volume as well",
        &[
            "a_directory_of_the_host_is_a_volume_like_any_other",
            "what_is_served_can_be_used_as_a_volume_again",
        ],
    ),
    (
        "A Cedar volume is a read-only cache of any other volume",
        &[
            "files_of_another_volume_are_cached_and_linked_to",
            "a_cache_shows_the_remotes_tree_and_without_it_what_was_read",
        ],
    ),
    (
        "lists the commands; each has an example in its own",
        &[
            "every_command_has_an_example",
            "every_example_of_every_help_page_does_what_it_says",
        ],
    ),
    (
        "prints a manual page for each command",
        &["manual_pages_and_completions_have_each_option_of_each_command"],
    ),
    (
        "build images without root",
        &[
            "a_new_volume_belongs_to_who_made_it",
            "what_mtools_reads_is_what_was_copied",
        ],
    ),
    (
        "they survive other systems' writes",
        &[
            "linux_keeps_the_extension",
            "the_extension_comes_back_in_both_layouts",
        ],
    ),
    (
        "looping and merging chains as well, nothing readable lost unreported",
        &[
            "there_are_more_than_100_kinds_of_damage",
            "mending_mends_it_and_loses_nothing_unsaid",
        ],
    ),
    (
        "one trait, and every server, layer and test suite at once",
        &[
            "cedar_keeps_its_word",
            "a_mounted_fat_volume_keeps_its_word",
            "a_driver_by_a_read_only_tree_keeps_its_word",
            "the_crate_graph_has_only_the_edges_of_the_design",
        ],
    ),
];

const SECURITY: Claims = &[
    (
        "whoever has most gives one up, the newest that is idle, to whom has two less",
        &[
            "who_has_all_connections_of_nfs_gives_some_to_another_user",
            "who_has_all_connections_of_smb_gives_some_to_another_user",
            "who_has_most_gives_way_where_all_are_known",
            "a_party_is_a_host_or_a_user_of_this_one",
        ],
    ),
    (
        "have a bound for all and a smaller one for each user or client",
        &[
            "one_user_s_locks_leave_room_for_another_s",
            "no_party_has_more_than_its_share",
            "one_host_s_names_leave_room_for_others",
            "a_user_has_so_many_connections_and_trees",
            "the_pipes_of_a_user_are_bounded_over_all_trees",
            "a_pipe_keeps_few_answers_that_are_not_read",
            "who_lets_all_wait_has_no_thread_for_each",
        ],
    ),
    (
        "set-gid and capabilities of a file that was written before the write is answered",
        &[
            "a_program_that_its_owner_has_written_runs_as_its_caller_at_once",
            "a_program_that_was_written_has_no_capabilities",
        ],
    ),
    (
        "POSIX access lists are obeyed for every server or cannot be set",
        &[
            "a_list_that_would_not_be_obeyed_is_refused_on_every_mount",
            "a_list_lets_in_whom_it_names_and_nobody_else",
            "clients_of_every_server_are_held_to_a_list",
            "a_list_that_denies_one_user_is_kept_whole_or_refused_with_nothing_changed",
        ],
    ),
    (
        "No image makes volary panic, hang or take more memory than the bound",
        &[
            "boot_sectors_and_all_else_of_any_bytes_never_panic",
            "damage_by_chance_hurts_nobody",
            "damaged_volumes_cannot_hurt_any_target",
            "memory_stays_in_its_bound_whatever_is_read_or_written",
            "many_files_that_share_a_long_chain_take_no_time",
        ],
    ),
    (
        "All names are printed through one escaping function.",
        &[
            "terminal_codes_do_not_reach_the_terminal",
            "names_that_would_move_the_cursor_are_escaped",
        ],
    ),
    (
        "and follows no symlink while it writes",
        &["nothing_is_written_through_symlinks_of_the_target"],
    ),
    (
        "an id of a node outside opens nothing",
        &[
            "a_swapper_of_symlinks_leads_nowhere",
            "a_directory_that_is_carried_out_and_back_leads_nowhere",
            "five_thousand_bad_names_are_names_and_nothing_more",
        ],
    ),
    (
        "A mount has `nosuid,nodev` unless told otherwise by root.",
        &["a_mount_has_no_set_uid_programs_and_devices_unless_root_asks"],
    ),
    (
        "The calls of an ordinary user are that user's",
        &[
            "a_user_of_this_host_is_nobody_else_by_nfs",
            "no_squash_makes_a_user_of_this_host_nobody_else",
            "a_socket_that_was_closed_is_nobody_s",
        ],
    ),
    (
        "set-uid and set-gid bits of files cannot be set there",
        &[
            "nobody_makes_a_program_that_runs_as_another_on_a_served_directory",
            "groups_of_the_system_are_squashed_where_root_is",
        ],
    ),
    (
        "no other frees, takes or cancels",
        &[
            "nobody_frees_another_users_locks_and_shares",
            "nobody_is_given_another_users_lock_or_ends_its_wait",
            "who_is_believed_is_one_party_whoever_it_speaks_for",
            "a_user_is_not_given_what_another_was_answered_at_the_same_port",
        ],
    ),
    (
        "remembered calls are bounded, locks and remembered calls for each user of a client as well; one that says nothing is sent away",
        &[
            "who_remembers_little_forgets_nothing_for_who_has_much",
            "one_user_s_calls_leave_another_s_remembered",
            "records_that_are_none_end_the_connection",
            "connections_are_bounded",
            "a_client_that_says_nothing_is_sent_away",
        ],
    ),
    (
        "A listener that can accept nobody rests and goes on; opens leave descriptors to the rest of the process",
        &[
            "who_opens_all_they_can_leaves_room_for_others",
            "connections_that_take_all_descriptors_do_not_end_the_server",
            "nobody_keeps_a_server_from_its_end",
            "a_server_that_cannot_listen_any_more_ends_the_command_with_a_word",
        ],
    ),
    (
        "Its directories are listed as far as memory for them goes",
        &["a_directory_without_end_is_not_listed"],
    ),
    (
        "File handles carry a 128-bit seal under a secret key",
        &[
            "no_handle_is_forged_by_turning_a_bit",
            "no_forged_handle_is_taken",
        ],
    ),
    (
        "above an exported subtree is not reachable by `..`",
        &[
            "nothing_outside_can_be_reached_by_its_id",
            "one_cannot_climb_out_of_a_directory_that_was_moved_out",
        ],
    ),
    (
        "Nobody comes in without a password",
        &["nobody_comes_in_without_the_password"],
    ),
    (
        "Messages are signed by default, encrypted where others than this host are served",
        &[
            "signatures_are_asked_for_unless_nothing_is",
            "who_cannot_encrypt_is_refused_where_that_is_asked_for",
            "one_volume_of_several_may_be_for_encrypted_messages_alone",
        ],
    ),
    (
        "whatever is changed, replayed or talked down to an older dialect on its way is refused",
        &[
            "no_changed_bit_of_a_session_is_accepted",
            "nothing_is_accepted_twice",
            "a_changed_negotiation_is_found_by_its_validation",
        ],
    ),
    (
        "wrong passwords cost time; who is slow or silent is sent away",
        &[
            "wrong_passwords_are_refused_and_cost_time",
            "who_does_not_log_on_is_sent_away",
            "connections_are_counted_and_others_go_on",
        ],
    ),
    (
        "whichever connections they come by: half a second, then twice as long each time",
        &[
            "many_connections_guess_no_faster_than_one",
            "each_guess_costs_more_and_what_is_long_ago_nothing",
        ],
    ),
    (
        "from an address that made no wrong guess a logon waits two seconds at most",
        &[
            "who_guesses_keeps_nobody_out_who_comes_from_elsewhere",
            "who_comes_from_elsewhere_waits_little",
        ],
    ),
    (
        "`--allow` and `allow` hold for SMB as well",
        &["who_is_not_allowed_is_not_let_in_by_smb_either"],
    ),
    (
        "Others are refused its tree, and do not see it listed.",
        &["a_share_is_for_those_who_are_named_for_it"],
    ),
    (
        "is spoken only with `--smb-min 2.0.2`",
        &["the_oldest_dialect_is_spoken_only_if_it_is_asked_for"],
    ),
    (
        "Breaks of leases are sent only where their user has logged on.",
        &["breaks_go_to_connections_on_which_their_user_has_logged_on"],
    ),
    (
        "the path that an open keeps has 4,095 bytes",
        &["a_path_that_is_kept_has_4095_bytes_at_most"],
    ),
    (
        "Whatever adds a name asks the directory's descriptor, as a CREATE does.",
        &[
            "a_name_is_added_and_replaced_only_as_descriptors_let",
            "a_share_for_reading_takes_no_name",
        ],
    ),
    (
        "is told of names in directories that they may list, and of no others",
        &["names_are_told_only_to_who_may_list_their_directory"],
    ),
    (
        "A lease is its user's alone, whatever client others say they are.",
        &["a_lease_is_its_user_s_alone"],
    ),
    (
        "and so are all addresses of this host",
        &[
            "guesses_from_many_addresses_of_this_host_cost_as_those_from_one",
            "this_host_is_one_address",
        ],
    ),
    (
        "the file of users where it is neither root's nor of who runs the server",
        &["a_file_of_users_is_its_server_s_or_root_s"],
    ),
    (
        "the key of file handles are refused where others have rights on them",
        &[
            "a_key_that_another_may_know_is_refused",
            "a_file_that_others_may_read_is_refused",
            "an_encrypted_volume_shows_itself_to_those_who_know_the_words",
            "the_list_of_clients_with_locks_is_written_beside_nothing_that_is_there",
        ],
    ),
    (
        "there are no passwords, hashes, keys or content in it",
        &["the_log_says_who_did_what_and_no_secrets"],
    ),
    (
        "five lines are written at once, then one a minute with how many there were",
        &[
            "what_goes_on_is_counted_and_not_written",
            "what_goes_on_is_a_line_a_minute",
            "many_addresses_make_no_more_than_so_many_lines",
        ],
    ),
    (
        "such a process reaches no files of the host but the volume's own",
        &[
            "a_process_that_was_taken_over_opens_no_file_makes_no_socket_and_starts_nothing",
            "a_server_gives_up_what_it_does_not_need_unless_told_not_to",
            "a_mount_gives_up_what_it_does_not_need_and_is_unmounted_all_the_same",
            "an_ordinary_user_s_mount_is_confined_and_unmounted_too",
        ],
    ),
    (
        "With `--run-as USER` it is that user for good",
        &[
            "a_server_runs_as_another_for_good_and_opens_what_that_one_may",
            "a_directory_is_mounted_as_another_for_good",
        ],
    ),
    (
        "no process of the same user can trace it",
        &["nobody_of_the_same_user_can_look_into_its_memory"],
    ),
    ("**Sums that do not fit**", &["releases_check_sums"]),
    (
        "the volume takes no more changes",
        &[
            "a_failed_write_is_told_when_the_mount_ends",
            "a_failed_write_is_told_once_and_when_it_ends",
        ],
    ),
    (
        "**A power cut.**",
        &[
            "no_power_cut_on_fat12_leaves_damage",
            "no_power_cut_on_fat16_leaves_damage",
            "no_power_cut_on_fat32_leaves_damage",
        ],
    ),
    (
        "The server listens on this host only unless told twice",
        &[
            "others_are_served_only_by_one_who_knows",
            "what_cannot_be_served_is_told_in_one_line",
        ],
    ),
    (
        "root is squashed",
        &["callers_are_squashed_as_the_export_says"],
    ),
    (
        "image files are locked with `flock`",
        &[
            "an_image_that_another_uses_is_left_alone",
            "an_image_whose_user_just_ends_is_waited_for_and_another_is_named",
        ],
    ),
    (
        "`forbid(unsafe_code)` in the drivers",
        &["drivers_forbid_unsafe_code_but_the_one_that_calls_the_system"],
    ),
    (
        "symlinks and directories swapped under a served directory",
        &["a_swapper_of_symlinks_leads_nowhere"],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a page without its line breaks.
fn page(name: &str) -> String {
    let text = fs::read_to_string(root().join(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All sources below a directory, in one text.
fn sources(dir: &Path, text: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn each_claim_stands_in_its_page_and_has_tests_that_are_there() {
    let mut all = String::new();
    for dir in ["crates", "drivers", "servers", "examples", "fuzz", "xtask"] {
        sources(&root().join(dir), &mut all);
    }
    for (name, claims) in [("README.md", README), ("SECURITY.md", SECURITY)] {
        let page = page(name);
        for (words, tests) in claims {
            assert!(page.contains(words), "{name} does not say: {words}");
            assert!(!tests.is_empty());
            for test in *tests {
                let is_there = all.contains(&format!("fn {test}()"))
                    // Suites of the testkit are called by the tests of each driver.
                    || all.contains(&format!("fn {test}("));
                assert!(is_there, "there is no test {test}: {words}");
            }
        }
    }
}

#[test]
fn each_part_of_the_pages_has_a_claim_with_a_test() {
    // What begins a part: a paragraph of the first page up to its plans, a point of the other.
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (readme, _) = readme.split_once("## Test it").unwrap();
    let rows = readme
        .lines()
        .filter(|line| line.starts_with("| ") && !line.contains("| today |"));
    let paragraphs = readme
        .split("\n\n")
        .filter(|part| !part.starts_with(['#', ' ', '|']));
    let parts = paragraphs.chain(rows).map(|part| (part, README));
    let security = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let (_, security) = security
        .split_once("## What volary defends against")
        .unwrap();
    let (security, _) = security.split_once("## What it does not").unwrap();
    let points = security.split("\n- ").skip(1).map(|part| (part, SECURITY));
    for (part, claims) in parts.chain(points) {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if part.is_empty() {
            continue;
        }
        // What leads to commands below it has its words from them.
        let is_short = part.len() < 60 && part.ends_with(':');
        let has_claim = claims.iter().any(|(words, _)| part.contains(words));
        assert!(is_short || has_claim, "no test is named for: {part}");
    }
}

#[test]
fn the_commands_of_the_first_page_work() {
    let sandbox = Sandbox::empty();
    fs::rename(sandbox.path("tree"), sandbox.path("crates")).unwrap();
    fs::remove_dir(sandbox.path("mnt")).unwrap();
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("    volary "));
    // Those that need a server, or are one.
    let is_run = |line: &&str| !line.starts_with("serve") && !line.contains("nfs://");
    let mut run = 0;
    for line in lines.filter(is_run) {
        let ran = sandbox.shell(&format!("volary {line}"));
        // The report of `sim` is no complaint.
        let err = if line.starts_with("sim ") {
            ""
        } else {
            &ran.err
        };
        assert_eq!((ran.code, err), (0, ""), "{line}: {}{}", ran.out, ran.err);
        run += 1;
    }
    assert!(run >= 4, "{run}");
    if can_mount() {
        assert!(text.contains("    mkdir mnt && volary mount disk.img mnt\n"));
        fs::create_dir(sandbox.path("mnt")).unwrap();
        let mounting = Mounting::start(&sandbox, &["disk.img"]).unwrap();
        assert_eq!(sandbox.read("mnt/crates/a.txt"), b"alpha\n");
        drop(mounting);
    }
}

#[test]
fn a_mount_has_no_set_uid_programs_and_devices_unless_root_asks() {
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let flags = |words: &[&str]| {
        let mounting = Mounting::start(&sandbox, words).unwrap();
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let place = sandbox.path("mnt").display().to_string();
        let line = all
            .lines()
            .find(|line| line.contains(&place))
            .unwrap()
            .to_owned();
        drop(mounting);
        let flags = line.split(' ').nth(5).unwrap().to_owned();
        ["nosuid", "nodev"].map(|flag| flags.split(',').any(|found| found == flag))
    };
    assert_eq!(flags(&["unix.img"]), [true, true]);
    assert_eq!(flags(&["-o", "suid", "unix.img"]), [false, true]);
    assert_eq!(flags(&["-o", "suid,dev", "unix.img"]), [false, false]);
}
