-- Neovim with avante.nvim.
require("avante").setup({
  provider = "castor",
  acp_providers = {
    castor = {
      command = "castor",
      args = { "acp" },
      -- avante.nvim passes PATH and these, and nothing else of Neovim's environment.
      env = { HOME = os.getenv("HOME"), GEMINI_API_KEY = os.getenv("GEMINI_API_KEY") },
      auth_method = "gemini-api-key",
    },
  },
})
