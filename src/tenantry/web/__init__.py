"""The HTTP API of tenants, and the operator's own small application beside it.

Theory. Each request passes the same short pipeline: route, method, credential, body, handler, answer. Every
step may end it with a *problem* (RFC 9457), and there is one table of them (:mod:`tenantry.web.problems`). A
handler is a function from a :class:`~tenantry.web.calls.Call` to an :class:`~tenantry.web.calls.Answer`; what
routes there are is one table too (:mod:`tenantry.web.operations`), from which both the router and the OpenAPI
document are made, so that neither can promise what the other does not keep.

Authority. The verified credential alone names the tenant (law I1). Everything else that names one must agree.

Invariants. A refused request changes nothing. A body is never held beyond its limit. No answer, event or log
line holds a credential, a raw path or query, or another tenant's data.

Failures. An unreachable store is 503 with ``Retry-After``. A fault of ours is 500 with an id, told as an
event.

``api``        :func:`create_api`        the tenants' application
``operator``   :func:`create_operator_app`   metrics and health, for an address that tenants do not reach
``server``     :class:`HttpServer`       either of them on a socket
``services``   :class:`ApiServices`      what ``cli`` hands in
"""
