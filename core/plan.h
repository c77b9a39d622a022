/* Plans inside the core: the host slots that architecture plugins write a pn_plan through. */
#ifndef PN_PLAN_H
#define PN_PLAN_H

#include <pantheon/pantheon.h>

/* Bodies of the host slots of the same names (see plugin.h for their contracts). */
pn_status pn_plan_add_weight(pn_plan *plan, const pn_weight_request *request, pn_wt *out, pn_error *err);
pn_status pn_plan_add_op(pn_plan *plan, const pn_op_call *call, pn_val *out, pn_error *err);
pn_status pn_plan_set_output(pn_plan *plan, pn_val value, pn_error *err);

#endif
