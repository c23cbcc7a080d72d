// The one list of commands. `build.rs` makes the access-control list of it, `commands.rs` the
// handler, and the bindings test the TypeScript; capabilities/main.json grants them one by one.
macro_rules! each_command {
    ($($then:tt)+) => {
        $($then)+![
            startup,
            retry_start,
            restore_copy,
            start_empty,
            open_damaged,
            has_room,
            show_data_folder,
            quit,
            subscribe,
            snapshot,
            open_chat,
            send,
            send_queued,
            regenerate,
            continue_answer,
            edit_message,
            show_sibling,
            stop,
            rename_chat,
            delete_chat,
            restore_chat,
            search,
            save_draft,
            save_pastes,
            save_queue,
            save_settings,
            pick_model,
            retry_model,
            use_demo_model,
            check_model,
            stop_model_check,
            open_link
        ]
    };
}
