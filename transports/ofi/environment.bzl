"""kRequiredEnvironment of environment.h for tests: `env = OFI_ENVIRONMENT`."""

OFI_ENVIRONMENT = {
    "IPATH_NO_BACKTRACE": "1",
    "FI_OFI_RXM_BUFFER_SIZE": "20480",
    "FI_SOCKETS_PE_WAITTIME": "0",
    "FI_SOCKETS_CONN_TIMEOUT": "300",
    "FI_SOCKETS_MAX_CONN_RETRY": "1",
}
