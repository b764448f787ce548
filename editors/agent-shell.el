;;; agent-shell.el --- castor in agent-shell, in the place of Gemini CLI -*- lexical-binding: t; -*-
;; In older versions the first variable is agent-shell-google-gemini-command.
(setq agent-shell-google-gemini-acp-command '("castor" "acp")
      agent-shell-google-authentication
      (agent-shell-google-make-authentication :api-key (lambda () (getenv "GEMINI_API_KEY"))))
