/* Names of the library's version and of status codes. */
#include <pantheon/pantheon.h>

const char *pn_version(void)
{
    return PN_VERSION;
}

const char *pn_status_name(pn_status status)
{
    switch (status) {
    case PN_OK: return "ok";
    case PN_E_ARGUMENT: return "wrong argument";
    case PN_E_NOMEM: return "out of memory";
    case PN_E_IO: return "input/output error";
    case PN_E_FORMAT: return "malformed";
    case PN_E_UNSUPPORTED: return "unsupported";
    case PN_E_NOT_FOUND: return "not found";
    case PN_E_RANGE: return "out of range";
    case PN_E_FULL: return "full";
    case PN_E_ABI: return "plugin and host do not fit";
    case PN_E_CPU: return "CPU feature absent";
    case PN_E_CONFLICT: return "name taken";
    case PN_E_CONFIG: return "configuration error";
    case PN_E_CANCELLED: return "cancelled";
    case PN_E_STATE: return "wrong state";
    case PN_E_DENIED: return "denied";
    case PN_E_INTERNAL: return "internal error";
    default: return "unknown status";
    }
}
