-- Neovim with avante.nvim.
require("avante").setup({
  provider = "castor",
  acp_providers = {
    castor = {
      command = "castor",
      args = { "acp" },
      env = { GEMINI_API_KEY = os.getenv("GEMINI_API_KEY") },
      auth_method = "gemini-api-key",
    },
  },
})
