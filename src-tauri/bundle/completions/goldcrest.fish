# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_goldcrest_global_optspecs
    string join \n t/threads= c/context= h/help V/version
end

function __fish_goldcrest_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_goldcrest_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_goldcrest_using_subcommand
    set -l cmd (__fish_goldcrest_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c goldcrest -n "__fish_goldcrest_needs_command" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else the setting]' -r
complete -c goldcrest -n "__fish_goldcrest_needs_command" -s c -l context -d 'Context length in tokens [default: GOLDCREST_CONTEXT, else the setting]' -r
complete -c goldcrest -n "__fish_goldcrest_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -s V -l version -d 'Print version'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "ask" -d 'Ask one question; prints the answer on stdout, the thinking on stderr'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "chat" -d 'Chat in the terminal'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "chats" -d 'List the chats: id, last day, messages, title'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "export" -d 'Write chats to a file'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "import" -d 'Import chats that Goldcrest or another program exported'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "guide" -d 'Explain how to use Goldcrest: list the topics, or print one'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "inspect" -d 'Show what is in a GGUF file and the memory that it needs'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "models" -d 'List known models and the model files on this computer, with memory and speed'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "tokenize" -d 'Print the token ids of each text as a line of JSON'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "render" -d 'Print the exact prompt that a model\'s chat template renders'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "logits" -d 'Print logits as JSON rows'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "bench" -d 'Measure prefill and decode speed'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "quantize" -d 'Convert a model in floats to a quantised GGUF file'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "verify" -d 'Compare Goldcrest\'s results on this machine with candle, an independent implementation'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "fetch" -d 'Download a model to Hugging Face\'s cache and verify it'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "devices" -d 'List the devices that a model can run on, and why each would be used or not'
complete -c goldcrest -n "__fish_goldcrest_needs_command" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -s m -l model -d 'GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l device -d 'auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -s c -l context -d 'Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l kv -d 'KV cache: f16, or q8_0 for half the memory [default: f16]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l preset -d 'Instructions, thinking and sampling of a preset; other flags take precedence' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -s s -l system -d 'Instructions that replace the default ones' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l max-tokens -d 'Maximum answer length: a whole number from 1 to 1048576. In tokens, including thinking.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l thinking-budget -d 'Thinking budget: a whole number from 1 to 1048576. Most tokens to spend on thinking. Then the model answers.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l temperature -d 'Temperature: 0, or a number from 0.001 to 5. 0 always gives the same answer; higher values vary more. [default: as the model\'s file says, else 0.6]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l top-p -d 'Top-p: a number from 0.01 to 1. Considers only the likeliest tokens that add up to this probability. [default: as the model\'s file says, else 0.95]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l top-k -d 'Top-k: a whole number from 0 to 200000. Considers only this many of the likeliest tokens; 0 considers all. [default: as the model\'s file says, else 0]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l min-p -d 'Min-p: a number from 0 to 1. Ignores tokens less likely than this fraction of the top one. [default: as the model\'s file says, else 0]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l repeat-penalty -d 'Repeat penalty: a number from 0.5 to 3. Above 1 discourages repetition. [default: as the model\'s file says, else 1]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l seed -d 'Seed: a whole number from 0 to 9007199254740991. The same seed gives the same answer on the same device.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l no-think -d 'Answer at once, without thinking first'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l no-lookup -d 'Turn off speculative decoding (same answers, slower where they repeat the context)'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l no-guide -d 'Have the model answer questions about Goldcrest, too'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -l json -d 'Print one JSON object at the end'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand ask" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -s m -l model -d 'GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l device -d 'auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -s c -l context -d 'Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l kv -d 'KV cache: f16, or q8_0 for half the memory [default: f16]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l preset -d 'Instructions, thinking and sampling of a preset; other flags take precedence' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -s s -l system -d 'Instructions that replace the default ones' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l max-tokens -d 'Maximum answer length: a whole number from 1 to 1048576. In tokens, including thinking.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l thinking-budget -d 'Thinking budget: a whole number from 1 to 1048576. Most tokens to spend on thinking. Then the model answers.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l temperature -d 'Temperature: 0, or a number from 0.001 to 5. 0 always gives the same answer; higher values vary more. [default: as the model\'s file says, else 0.6]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l top-p -d 'Top-p: a number from 0.01 to 1. Considers only the likeliest tokens that add up to this probability. [default: as the model\'s file says, else 0.95]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l top-k -d 'Top-k: a whole number from 0 to 200000. Considers only this many of the likeliest tokens; 0 considers all. [default: as the model\'s file says, else 0]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l min-p -d 'Min-p: a number from 0 to 1. Ignores tokens less likely than this fraction of the top one. [default: as the model\'s file says, else 0]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l repeat-penalty -d 'Repeat penalty: a number from 0.5 to 3. Above 1 discourages repetition. [default: as the model\'s file says, else 1]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l seed -d 'Seed: a whole number from 0 to 9007199254740991. The same seed gives the same answer on the same device.' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l no-think -d 'Answer at once, without thinking first'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -l no-lookup -d 'Turn off speculative decoding (same answers, slower where they repeat the context)'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chat" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chats" -l json -d 'Print JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand chats" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand export" -l chat -d 'Chats with these ids, separated by commas; `goldcrest chats` lists them' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand export" -l format -d 'jsonl holds everything and can be imported; markdown and html hold the shown versions [default: by the name of OUT]' -r -f -a "jsonl\t''
markdown\t''
html\t''"
complete -c goldcrest -n "__fish_goldcrest_using_subcommand export" -l all -d 'All chats'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand export" -l without-thinking -d 'Leave out thinking in markdown and html'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand guide" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand inspect" -l context -d 'Context length in tokens for the memory estimate' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand inspect" -l json -d 'Print JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand inspect" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand models" -l json -d 'Print JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand models" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -s m -l model -d 'GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -s f -l file -d 'Read texts from a file, one per line; `-` reads stdin' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -l no-special -d 'Treat special tokens such as `<|im_start|>` as plain text'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -s 0 -l null -d 'Texts in the file end in a null byte, so they may have several lines'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -l json -d 'Print a JSON object with the text and its ids'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand tokenize" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand render" -s m -l model -d 'GGUF file whose template is used [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand render" -l messages -d 'JSON with the template\'s variables under `context`, and `today` as YYYY-MM-DD' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand render" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -s m -l model -d 'GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -l device -d 'auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -s c -l context -d 'Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -l kv -d 'KV cache: f16, or q8_0 for half the memory [default: f16]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -l tokens -d 'Token ids, separated by commas' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -l all -d 'Print logits of every position, not only the last'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand logits" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s m -l model -d 'GGUF file [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l synthetic -d 'Use random weights in a known shape, for example smollm3-3b-q4_k_m' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l seed -d 'Seed of the random weights' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s p -l prompt -d 'Prompt tokens to process' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s n -l generate -d 'Tokens to generate' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s d -l depth -d 'Tokens in the KV cache before the measurement' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l chat -d 'Time a follow-up question in a chat of this many tokens' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l reopen -d 'Time only the first token of chats with these lengths in tokens after a restart, on the CPU' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s r -l repeats -d 'Number of measurements; the medians are shown' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l device -d 'auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s c -l context -d 'Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l kv -d 'KV cache: f16, or q8_0 for half the memory [default: f16]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l without-matrices -d 'Do not use the GPU\'s cooperative matrices'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l lookup -d 'Measure speculative decoding on texts that repeat the context and texts that do not'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -l json -d 'Print JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand bench" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand quantize" -s t -l threads -d 'CPU threads [default: logical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand quantize" -l force -d 'Overwrite OUT if it exists'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand quantize" -l json -d 'Print one JSON object, with the type and the relative error of each tensor'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand quantize" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -s n -l tokens -d 'Tokens of the text to evaluate [default: 256; 96 for models with more than a billion parameters]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -l device -d 'auto, cpu, gpu, gpu:ID, or for `ask` also reference (candle) [default: GOLDCREST_DEVICE, else auto]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -s t -l threads -d 'CPU threads [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -s c -l context -d 'Context length in tokens; YaRN extends it beyond the trained length [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -l kv -d 'KV cache: f16, or q8_0 for half the memory [default: f16]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -l json -d 'Print one JSON object'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand fetch" -l folder -d 'Put the file into this folder instead of Hugging Face\'s cache' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand fetch" -l sha256 -d 'SHA-256 of the file; needed if its server does not publish one' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand fetch" -l json -d 'Print one JSON object at the end'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -s m -l model -d 'GGUF file to run [default: GOLDCREST_MODEL, else the small model that comes with Goldcrest]' -r -F
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -s t -l threads -d 'CPU threads that a GPU has to outperform [default: GOLDCREST_THREADS, else physical cores]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -s c -l context -d 'Context length for the memory shown [default: GOLDCREST_CONTEXT, else as trained, in at most half of the free memory]' -r
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -l check -d 'Clear the GPU check cache, then check and measure the GPUs again'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -l json -d 'Print JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand devices" -s h -l help -d 'Print help'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "ask" -d 'Ask one question; prints the answer on stdout, the thinking on stderr'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "chat" -d 'Chat in the terminal'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "chats" -d 'List the chats: id, last day, messages, title'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "export" -d 'Write chats to a file'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "import" -d 'Import chats that Goldcrest or another program exported'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "guide" -d 'Explain how to use Goldcrest: list the topics, or print one'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "inspect" -d 'Show what is in a GGUF file and the memory that it needs'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "models" -d 'List known models and the model files on this computer, with memory and speed'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "tokenize" -d 'Print the token ids of each text as a line of JSON'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "render" -d 'Print the exact prompt that a model\'s chat template renders'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "logits" -d 'Print logits as JSON rows'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "bench" -d 'Measure prefill and decode speed'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "quantize" -d 'Convert a model in floats to a quantised GGUF file'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "verify" -d 'Compare Goldcrest\'s results on this machine with candle, an independent implementation'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "fetch" -d 'Download a model to Hugging Face\'s cache and verify it'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "devices" -d 'List the devices that a model can run on, and why each would be used or not'
complete -c goldcrest -n "__fish_goldcrest_using_subcommand help; and not __fish_seen_subcommand_from ask chat chats export import guide inspect models tokenize render logits bench quantize verify fetch devices help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
