/* The `pantheon` program: finds the subcommand and runs it. */
#include "tool.h"

#include <signal.h>
#include <string.h>


static const tool_command COMMANDS[] = {
    { "run", cmd_run, "continue a text, or answer one message" },
    { "chat", cmd_chat, "hold a conversation" },
    { "inspect", cmd_inspect, "show what a model file holds" },
    { "why-not", cmd_why_not, "say what is missing to run a model file" },
    { "plugins", cmd_plugins, "list plugins, what they bring, and which kernels would be used" },
    { "config", cmd_config, "show or check a configuration, with the origin of every value" },
    { "tokenize", cmd_tokenize, "text to token ids" },
    { "detokenize", cmd_detokenize, "token ids to text" },
    { "dequant", cmd_dequant, "a tensor as float32" },
    { "eval", cmd_eval, "logits of every position of a list of tokens" },
    { "bench", cmd_bench, "measure prompt and decode speed" },
    { "quantize", cmd_quantize, "a copy of a model whose matrices have other types" },
    { "importance", cmd_importance, "which columns of a model's matrices matter, by a text" },
    { "perplexity", cmd_perplexity, "how well a model foretells a text, and how far it is from another" },
};
enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static void print_help(void)
{
    printf("pantheon %s: runs language models; everything that has a name is a plugin\n\n"
           "usage: pantheon COMMAND [OPTIONS]\n\n", pn_version());
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-11s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    printf("\n'pantheon COMMAND --help' explains a command. -h, --help and --version work without one.\n"
           "Results go to standard output, everything else to standard error.\n"
           "Exit status: 0 success, 1 failure, 2 usage, 130 stopped by Ctrl-C.\n"
           "Environment: PANTHEON_CPU=c|avx2|avx512|amx lowers the kernels' level; PANTHEON_PLUGIN_PATH names folders\n"
           "of plugins, separated by colons.\n");
}

static int unknown(const char *name)
{
    const char *names[N_COMMANDS], *near;
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = COMMANDS[i].name;
    near = tool_nearest(name, names, N_COMMANDS);
    fprintf(stderr, "pantheon: no %s is called '", name[0] == '-' ? "option" : "command");
    tool_print_safe(stderr, name, strlen(name), false);
    if (near)
        fprintf(stderr, "'; did you mean '%s'?\n", near);
    else
        fprintf(stderr, "'\n");
    fprintf(stderr, "see 'pantheon --help'\n");
    return 2;
}

static const tool_command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, COMMANDS[i].name) == 0)
            return &COMMANDS[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const tool_command *command;
    /* A closed pipe is an error of the write, so that files are finished and memory is checked. */
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2) {
        fprintf(stderr, "pantheon: a command is wanted, for instance: pantheon run MODEL -p \"Once upon a time\"\n"
                        "see 'pantheon --help'\n");
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("pantheon %s\n", pn_version());
        return tool_finish();
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return tool_finish();
    }
    if (strcmp(argv[1], "help") == 0) {     /* as many programs have it */
        char help[] = "--help", *args[] = { argc > 2 ? argv[2] : NULL, help, NULL };
        if (argc == 2) {
            print_help();
            return tool_finish();
        }
        command = find(argv[2]);
        return command ? command->run(2, args) : unknown(argv[2]);
    }
    command = find(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : unknown(argv[1]);
}
