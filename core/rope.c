/* Rotary frequencies with their scalings, and the cosines and sines of a token. */
#include "alloc.h"
#include "exec.h"

#include <inttypes.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

/* YaRN, "NTK by parts": the pair at which a wavelength makes `turns` turns within the original context
 * (arXiv:2309.00071, section 3.2). */
static double yarn_pair(const pn_rope_params *p, double turns)
{
    return p->n_dims * log(p->original_context / (turns * 2 * pi)) / (2 * log((double)p->base));
}

static void yarn(const pn_rope_params *p, double *frequency, double *magnitude)
{
    double low = floor(yarn_pair(p, (double)p->beta_fast)), high = ceil(yarn_pair(p, (double)p->beta_slow));
    low = low < 0 ? 0 : low;
    high = high > p->n_dims - 1 ? p->n_dims - 1 : high;
    for (uint32_t i = 0; i < p->n_dims / 2; i++) {
        double ramp = (i - low) / (high - low > 0.001 ? high - low : 0.001);
        double keep = (1 - (ramp < 0 ? 0 : ramp > 1 ? 1 : ramp)) * (double)p->ext_factor;
        frequency[i] = frequency[i] * keep + frequency[i] / (double)p->factor * (1 - keep);
    }
    if (p->ext_factor != 0 && p->factor > 1) *magnitude *= 1 + 0.1 * log((double)p->factor);
}

pn_status pn_rope_table_init(pn_rope_table *t, const pn_plan *plan, const pn_plan_node *node, int32_t context,
                             size_t batch, pn_error *err)
{
    const pn_rope_params *p = &node->p.rope;
    pn_wt factors = node->weights[0];
    if (p->scaling == PN_ROPE_LONGROPE && context > (int64_t)p->original_context && node->weights[1])
        factors = node->weights[1];
    t->n_pairs = p->n_dims / 2;
    t->magnitude = 1;
    t->frequency = pn_calloc(t->n_pairs, sizeof *t->frequency);
    t->cosine = pn_calloc(batch * t->n_pairs, sizeof *t->cosine);
    t->sine = pn_calloc(batch * t->n_pairs, sizeof *t->sine);
    if (!t->frequency || !t->cosine || !t->sine)
        return pn_fail(err, PN_E_NOMEM, "no memory for rotary tables of %" PRIu32 " pairs", t->n_pairs);
    for (uint32_t i = 0; i < t->n_pairs; i++) {
        t->frequency[i] = pow((double)p->base, -2.0 * i / p->n_dims);
        if (factors) {
            double f = (double)plan->weights[factors].vector[i];
            if (!(f > 0) || !isfinite(f)) {
                pn_str name = plan->weights[factors].tensor->name;
                return pn_fail(err, PN_E_FORMAT, "tensor '%.*s': factor %" PRIu32 " is %g, expected a positive number",
                               (int)name.size, name.data, i, f);
            }
            t->frequency[i] /= f;
        }
        if (p->scaling == PN_ROPE_LINEAR) t->frequency[i] /= (double)p->factor;
    }
    if (p->scaling == PN_ROPE_YARN || p->scaling == PN_ROPE_LONGROPE) t->magnitude = (double)p->attn_factor;
    if (p->scaling == PN_ROPE_YARN) yarn(p, t->frequency, &t->magnitude);
    return PN_OK;
}

void pn_rope_table_free(pn_rope_table *t)
{
    pn_free(t->frequency);
    pn_free(t->cosine);
    pn_free(t->sine);
}

void pn_rope_table_fill(const pn_rope_table *t, size_t token, int32_t position)
{
    float *c = t->cosine + token * t->n_pairs, *s = t->sine + token * t->n_pairs;
    for (uint32_t i = 0; i < t->n_pairs; i++) {
        double angle = position * t->frequency[i];
        c[i] = (float)(cos(angle) * t->magnitude);
        s[i] = (float)(sin(angle) * t->magnitude);
    }
}
