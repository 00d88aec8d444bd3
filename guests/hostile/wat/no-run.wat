;; A component that is no step: it exports nothing.
;; Refused at deploy by name: `run` is missing.
(component)
