// Stands in for libpsm_infinipath.so.1, which Debian's libfabric is linked with and needs only for
// cards of the years after 2005. It brings libinfinipath.so.4 along, whose constructor measures the
// processor's clock, which takes 0.12 s, and takes over the handlers of signals.
//
// Every call fails, so libfabric finds no such card. library.cc has it loaded first, under the name
// of the other.

// PSM_INTERNAL_ERR; any error is as good.
enum { kNotThere = 8 };

#define STAND_IN(name) \
  int name(void);      \
  int name(void) { return kNotThere; }

STAND_IN(psm_am_get_parameters)
STAND_IN(psm_am_register_handlers)
STAND_IN(psm_am_reply_short)
STAND_IN(psm_am_request_short)
STAND_IN(psm_ep_close)
STAND_IN(psm_ep_connect)
STAND_IN(psm_ep_epid_lookup)
STAND_IN(psm_ep_num_devunits)
STAND_IN(psm_ep_open)
STAND_IN(psm_ep_open_opts_get_defaults)
STAND_IN(psm_epaddr_getctxt)
STAND_IN(psm_epaddr_setctxt)
STAND_IN(psm_error_register_handler)
STAND_IN(psm_finalize)
STAND_IN(psm_init)
STAND_IN(psm_mq_cancel)
STAND_IN(psm_mq_finalize)
STAND_IN(psm_mq_init)
STAND_IN(psm_mq_ipeek)
STAND_IN(psm_mq_iprobe)
STAND_IN(psm_mq_irecv)
STAND_IN(psm_mq_isend)
STAND_IN(psm_mq_send)
STAND_IN(psm_mq_test)

const char* psm_error_get_string(int error);
const char* psm_error_get_string(int error) {
  (void)error;
  return "Ferry does not load this library";
}
