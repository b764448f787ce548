-- Neovim with CodeCompanion: what castor shares with Gemini CLI's adapter is taken from there.
require("codecompanion").setup({
  adapters = {
    acp = {
      castor = function()
        return require("codecompanion.adapters").extend("gemini_cli", {
          formatted_name = "castor",
          commands = { default = { "castor", "acp" } },
          defaults = { auth_method = "gemini-api-key" },
        })
      end,
    },
  },
})
