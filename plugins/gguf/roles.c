/* Which GGUF key answers to which role, and what the format implies without a key. */
#include "gguf.h"

/* Keys begin with the architecture's name where `of_arch` says so. `other` is an older or rarer spelling. */
typedef struct role_key {
    const char *role;
    const char *key, *other;
    int of_arch;
} role_key;

static const role_key role_keys[] = {
    { PN_ROLE_ARCHITECTURE, "general.architecture", NULL, 0 },
    { PN_ROLE_NAME, "general.name", "general.basename", 0 },
    { PN_ROLE_CONTEXT_LENGTH, "context_length", NULL, 1 },
    { PN_ROLE_VOCAB_SIZE, "vocab_size", NULL, 1 },
    { PN_ROLE_BLOCK_COUNT, "block_count", NULL, 1 },
    { PN_ROLE_EMBEDDING_LENGTH, "embedding_length", NULL, 1 },
    { PN_ROLE_FEED_FORWARD, "feed_forward_length", NULL, 1 },
    { PN_ROLE_HEAD_COUNT, "attention.head_count", NULL, 1 },
    { PN_ROLE_HEAD_COUNT_KV, "attention.head_count_kv", NULL, 1 },
    { PN_ROLE_KEY_LENGTH, "attention.key_length", NULL, 1 },
    { PN_ROLE_VALUE_LENGTH, "attention.value_length", NULL, 1 },
    { PN_ROLE_RMS_EPS, "attention.layer_norm_rms_epsilon", NULL, 1 },
    { PN_ROLE_NORM_EPS, "attention.layer_norm_epsilon", NULL, 1 },
    { PN_ROLE_SLIDING_WINDOW, "attention.sliding_window", NULL, 1 },
    { PN_ROLE_ATTN_SCALE, "attention.scale", NULL, 1 },
    { PN_ROLE_ROPE_DIMS, "rope.dimension_count", NULL, 1 },
    { PN_ROLE_ROPE_BASE, "rope.freq_base", NULL, 1 },
    { PN_ROLE_ROPE_SCALING, "rope.scaling.type", NULL, 1 },
    { PN_ROLE_ROPE_FACTOR, "rope.scaling.factor", "rope.scale_linear", 1 },
    { PN_ROLE_ROPE_ORIG_CONTEXT, "rope.scaling.original_context_length", NULL, 1 },
    { PN_ROLE_ROPE_ATTN_FACTOR, "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", 1 },
    { PN_ROLE_ROPE_BETA_FAST, "rope.scaling.yarn_beta_fast", NULL, 1 },
    { PN_ROLE_ROPE_BETA_SLOW, "rope.scaling.yarn_beta_slow", NULL, 1 },
    { PN_ROLE_ROPE_EXT_FACTOR, "rope.scaling.yarn_ext_factor", NULL, 1 },
    { PN_ROLE_TOKENIZER, "tokenizer.ggml.model", NULL, 0 },
    { PN_ROLE_PRE_TOKENIZER, "tokenizer.ggml.pre", NULL, 0 },
    { PN_ROLE_TOKENS, "tokenizer.ggml.tokens", NULL, 0 },
    { PN_ROLE_TOKEN_TYPES, "tokenizer.ggml.token_type", NULL, 0 },
    { PN_ROLE_SCORES, "tokenizer.ggml.scores", NULL, 0 },
    { PN_ROLE_MERGES, "tokenizer.ggml.merges", NULL, 0 },
    { PN_ROLE_BOS, "tokenizer.ggml.bos_token_id", NULL, 0 },
    { PN_ROLE_EOS, "tokenizer.ggml.eos_token_id", NULL, 0 },
    { PN_ROLE_EOT, "tokenizer.ggml.eot_token_id", NULL, 0 },
    { PN_ROLE_UNK, "tokenizer.ggml.unknown_token_id", NULL, 0 },
    { PN_ROLE_SEP, "tokenizer.ggml.separator_token_id", "tokenizer.ggml.seperator_token_id", 0 },
    { PN_ROLE_PAD, "tokenizer.ggml.padding_token_id", NULL, 0 },
    { PN_ROLE_ADD_BOS, "tokenizer.ggml.add_bos_token", NULL, 0 },
    { PN_ROLE_ADD_EOS, "tokenizer.ggml.add_eos_token", NULL, 0 },
    { PN_ROLE_ADD_SPACE_PREFIX, "tokenizer.ggml.add_space_prefix", NULL, 0 },
    { PN_ROLE_CHAT_TEMPLATE, "tokenizer.chat_template", NULL, 0 },
};

/* Architectures whose files hold rows for neighbouring rotary pairs (x0, x1): converters reorder the rows of q and k,
 * or the model was trained so. */
static const char *const interleaved[] = {
    "llama", "llama4", "llama-embed", "llada", "mistral", "mistral3", "mistral4", "deci", "baichuan", "starcoder",
    "internlm2", "minicpm", "xverse", "command-r", "cohere2", "cohere2moe", "olmo", "arctic", "deepseek",
    "deepseek2", "deepseek2-ocr", "deepseek32", "deepseek4", "plm", "chatglm", "glm4", "glm-dsa", "granite",
    "granitemoe", "granitehybrid", "graniteswitch", "granite_swa", "chameleon", "bailingmoe", "bailingmoe3",
    "neo-bert", "smollm3", "arcee", "ernie4_5", "ernie4_5-moe", "eagle3", "maincoder", "nanbeige", NULL,
};

/* Those whose pairs are (x0, x[d/2]). About a name in neither list, such as one that [arch] alias gives a meaning, the
 * format says nothing. */
static const char *const halves[] = {
    "afmoe", "apertus", "bailingmoe2", "bert", "bitnet", "codeshell", "cogvlm", "dbrx", "dots1", "dream",
    "eurobert", "exaone", "exaone4", "exaone-moe", "falcon", "falcon-h1", "gemma", "gemma2", "gemma3", "gemma3n",
    "gemma4", "gemma-embedding", "glm4moe", "gpt-oss", "gptneox", "grok", "grovemoe", "hunyuan-dense",
    "hunyuan-moe", "hunyuan_vl", "jais2", "jina-bert-v3", "laguna", "lfm2", "lfm2moe", "llada-moe", "mellum",
    "mimo2", "minicpm3", "minimax-01", "minimax-m2", "minimax-m3", "modern-bert", "nemotron", "nomic-bert",
    "nomic-bert-moe", "olmo2", "olmoe", "openelm", "orion", "paddleocr", "pangu-embedded", "phi", "phi2", "phi3",
    "phimoe", "plamo", "plamo2", "plamo3", "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen35", "qwen35moe",
    "qwen3moe", "qwen3next", "qwen3vl", "qwen3vlmoe", "rnd1", "seed_oss", "smallthinker", "stablelm", "starcoder2",
    "step35", NULL,
};

static int among(const char *const *names, pn_str name)
{
    while (*names && !pn_str_is(name, *names))
        names++;
    return *names != NULL;
}

static const pn_value *find(const pn_host *host, const pn_file *file, const char *key)
{
    const pn_value *v = NULL;
    pn_error ignored;
    return pn_host_file_value(host, file, pn_str_from(key), &v, &ignored) ? NULL : v;
}

static pn_str arch_of(const pn_host *host, const pn_file *file)
{
    const pn_value *v = find(host, file, "general.architecture");
    return v && v->type == PN_T_STRING ? v->as.s : (pn_str){ NULL, 0 };
}

/* The key in full into out->key; 0 when it does not fit, as then no file of ours can have it. */
static int word_key(pn_str arch, const char *key, int of_arch, pn_role_value *out)
{
    int n;
    if (!of_arch)
        n = snprintf(out->key, sizeof out->key, "%s", key);
    else if (!arch.size)
        n = snprintf(out->key, sizeof out->key, "ARCHITECTURE.%s", key);
    else if (arch.size >= sizeof out->key || memchr(arch.data, 0, arch.size))
        n = -1;
    else
        n = snprintf(out->key, sizeof out->key, "%.*s.%s", (int)arch.size, arch.data, key);
    if (n >= 0 && (size_t)n < sizeof out->key)
        return 1;
    snprintf(out->key, sizeof out->key, "ARCHITECTURE.%s", key);
    return 0;
}

/* Look one spelling up; fills key, and value when it is there. */
static int look_up(const pn_host *host, const pn_file *file, pn_str arch, const char *key, int of_arch,
                   pn_role_value *out)
{
    if (!word_key(arch, key, of_arch, out))
        return 0;
    const pn_value *v = find(host, file, out->key);
    if (v) {
        out->value = *v;
        out->present = 1;
    }
    return v != NULL;
}

static void imply_text(const char *text, pn_role_value *out)
{
    memset(&out->value, 0, sizeof out->value);
    out->value.type = PN_T_STRING;
    out->value.as.s = pn_str_from(text);
    out->present = 1;
}

/* What a file means without saying it. `out->key` already names the key that is absent. */
static void imply(const pn_host *host, const pn_file *file, pn_str arch, const char *role, pn_role_value *out)
{
    pn_role_value factor;
    memset(&factor, 0, sizeof factor);
    if (strcmp(role, PN_ROLE_ROPE_SCALING) == 0) {
        /* A factor without a type, and the key of old files, mean linear scaling. */
        if (look_up(host, file, arch, "rope.scaling.factor", 1, &factor) ||
            look_up(host, file, arch, "rope.scale_linear", 1, &factor)) {
            imply_text("linear", out);
            memcpy(out->key, factor.key, sizeof out->key);
        }
    } else if (strcmp(role, PN_ROLE_VOCAB_SIZE) == 0) {
        const pn_value *tokens = find(host, file, "tokenizer.ggml.tokens");
        if (tokens && tokens->type == PN_T_ARRAY) {
            snprintf(out->key, sizeof out->key, "tokenizer.ggml.tokens");
            out->value.type = PN_T_U64;
            out->value.as.u = tokens->count;
            out->present = 1;
        }
    }
}

pn_status gguf_role(const pn_host *host, pn_file *file, void *state, const char *role, pn_role_value *out,
                    pn_error *err)
{
    pn_str arch = arch_of(host, file);
    (void)state;
    (void)err;
    out->present = 0;
    out->key[0] = 0;
    if (strcmp(role, PN_ROLE_ROPE_PAIRING) == 0) {
        if (!arch.size)
            return PN_OK;
        snprintf(out->key, sizeof out->key, "general.architecture");
        if (among(interleaved, arch))
            imply_text("interleaved", out);
        else if (among(halves, arch))
            imply_text("halves", out);
        return PN_OK;
    }
    for (size_t i = 0; i < sizeof role_keys / sizeof *role_keys; i++) {
        const role_key *k = &role_keys[i];
        if (strcmp(role, k->role) != 0)
            continue;
        if (look_up(host, file, arch, k->key, k->of_arch, out))
            return PN_OK;
        if (k->other && look_up(host, file, arch, k->other, k->of_arch, out))
            return PN_OK;
        word_key(arch, k->key, k->of_arch, out);
        imply(host, file, arch, role, out);
        return PN_OK;
    }
    return PN_OK;
}
